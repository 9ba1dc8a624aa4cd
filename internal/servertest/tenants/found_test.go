package tenants

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// refused opens on db and wants that error, which names the cure.
func (s scene) refused(db *sql.DB, want error) {
	s.Helper()
	c, err := rowlock.Open(db, s.Env.Dialect, servertest.Config())
	if err == nil {
		_ = c.Close()
	}
	s.WantErr(err, want)
	if err != nil && !strings.Contains(err.Error(), "dialect.Schema") {
		s.Errorf("%v names no cure", err)
	}
}

// A search_path counts if a connection begins with it: from the DSN or the role. One that a hook
// sends does not.
func TestOnPostgresASearchPathCountsIfTheSessionBeginsWithIt(t *testing.T) {
	servertest.On(t, "postgres", func(e *servertest.Scene) {
		s := elsewhere(e)
		tenant := s.Take(s.ClientOn(s.Env.DB, func(*rowlock.Config) {}), "k")
		s.OK(tenant.Unlock(s.Context()))
		there := s.With("search_path=pg_temp, \"nowhere, \"\"else\", " + s.tenant + ", public")
		c := there.Client()
		l := s.Take(c, "k")
		var owner sql.NullString
		s.OK(s.Env.DB.QueryRowContext(s.Context(), `SELECT owner FROM `+s.tenant+`.`+s.Env.Table("rowlock")+
			` WHERE key = 'k'`).Scan(&owner))
		if !owner.Valid {
			s.Error("the lock is not in the tenant's tables")
		}
		s.OK(l.Unlock(s.Context()))

		s.Exec(s.Env.DB, `CREATE SCHEMA `+s.tenant+`_empty`)
		s.Cleanup(func() { s.Env.Exec(s, `DROP SCHEMA `+s.tenant+`_empty`) })
		cfg, err := pgx.ParseConfig(s.Env.Source + "&search_path=" + s.tenant + "_empty")
		s.OK(err)
		hooked := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, `SET search_path = public`)
			return err
		}))
		defer hooked.Close()
		s.refused(hooked, rowlock.ErrNoSchema)
		c, err = rowlock.Open(hooked, s.Env.New(dialect.Schema("public"), dialect.Prefix(s.Env.Dialect.Names().Prefix)),
			servertest.Config())
		s.OK(err)
		s.OK(c.Close())
	})
}

// hook sends a statement on every new connection.
type hook struct {
	driver.Connector
	statement string
}

func (h hook) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := h.Connector.Connect(ctx)
	if err == nil {
		_, err = c.(driver.ExecerContext).ExecContext(ctx, h.statement, nil)
	}
	return c, err
}

// A DSN without a database, or a pool whose every connection was led away, says nothing.
func TestOnMySQLAPoolThatDoesNotTellItsDatabaseIsRefused(t *testing.T) {
	servertest.EachServer(t, func(e *servertest.Scene) {
		if e.Is("postgres") {
			return
		}
		s := elsewhere(e)
		cfg, err := mysqldriver.ParseDSN(s.Env.Source)
		s.OK(err)
		own := cfg.DBName
		cfg.DBName = ""
		none, err := mysqldriver.NewConnector(cfg)
		s.OK(err)
		named := s.Env.New(dialect.Schema(own), dialect.Prefix(s.Env.Dialect.Names().Prefix))
		for db, want := range map[*sql.DB]error{
			sql.OpenDB(none): rowlock.ErrNoSchema, sql.OpenDB(hook{none, "USE " + own}): rowlock.ErrConfig,
		} {
			s.refused(db, want)
			c, err := rowlock.Open(db, named, servertest.Config())
			s.OK(err)
			s.OK(s.Take(c, "k").Unlock(s.Context()))
			s.OK(c.Close())
			s.OK(db.Close())
		}
	})
}

// Behind a pooler a neighbor leaves its search_path in the sessions that all share.
func TestBehindPgBouncerANeighborsSearchPathLeadsNowhere(t *testing.T) {
	testdb.PgBouncer.DSN(t) // skips, before there is a database
	servertest.On(t, "postgres", func(e *servertest.Scene) {
		s := elsewhere(&servertest.Scene{T: e.T, Env: testdb.InOwnDatabase(e)})
		behind := s.Env.Behind(s)
		open := func() *rowlock.Client {
			c, err := rowlock.Open(behind.Pool(s), behind.Dialect, servertest.Config())
			s.OK(err)
			s.Cleanup(func() { _ = c.Close() })
			return c
		}
		first := open()
		neighbors := scene{&servertest.Scene{T: s.T, Env: behind}, s.tenant, s.lead}
		pool := neighbors.pool()
		neighbors.astray(pool)
		defer func() {
			s.lead = []string{`RESET search_path`}
			scene{neighbors.Scene, s.tenant, s.lead}.astray(pool)
		}()
		second := open()
		l := s.Take(first, "k")
		s.WantHeld(second, "k")
		s.OK(l.Unlock(s.Context()))
		if next := s.Take(second, "k"); next.Token() <= l.Token() {
			s.Errorf("token %d after %d", next.Token(), l.Token())
		}
	})
}
