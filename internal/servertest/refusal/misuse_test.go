package refusal

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// elsewhere is a database of the same product with no tables of rowlock's.
func elsewhere(s *servertest.Scene) (source string) {
	s.Helper()
	name := s.Env.Dialect.Names().Prefix + "elsewhere"
	switch s.Env.Driver {
	case "sqlite":
		return s.Env.Kind.DSN(s)
	case "pgx":
		s.Exec(s.Env.DB, `CREATE DATABASE `+name)
		s.Cleanup(func() { s.Env.Exec(s, `DROP DATABASE `+name+` WITH (FORCE)`) })
		u, err := url.Parse(s.Env.Source)
		s.OK(err)
		u.Path = "/" + name
		return u.String()
	}
	s.Exec(s.Env.DB, `CREATE DATABASE `+name)
	s.Cleanup(func() { s.Env.Exec(s, `DROP DATABASE `+name) })
	return s.Env.Source[:strings.LastIndex(s.Env.Source, "/")+1] + name
}

// A fence in another database than the lock's would protect nothing: it must not pass, and its
// refusal must not count as a lost lock.
func TestAFenceInATransactionOfAnotherDatabaseIsRefused(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		l := s.Take(s.Client(), "k")
		source := elsewhere(s)
		foreign := map[string]*sql.DB{}
		if s.Env.Driver != "mysql" { // a transaction there is one of the whole server, and has our tables
			foreign["one without tables"] = s.Dial(s.Env.Driver, source)
		}
		for _, k := range testdb.Kinds {
			if k.Driver != s.Env.Driver {
				foreign[k.Name] = nil
			}
		}
		refuse := func(s *servertest.Scene, db *sql.DB) {
			for name, check := range servertest.Checks {
				tx := s.Begin(db, nil)
				err := check(l, s.Context(), tx)
				if !errors.Is(err, rowlock.ErrForeignTx) || errors.Is(err, rowlock.ErrFenced) ||
					!strings.Contains(err.Error(), "given to Open") {
					s.Errorf("%s: %v, want %v", name, err, rowlock.ErrForeignTx)
				}
				s.OK(tx.Rollback())
			}
		}
		for name, db := range foreign {
			s.Run(name, func(t *testing.T) {
				if db == nil {
					db = servertest.KindNamed(name).Open(t).DB
				}
				refuse(&servertest.Scene{T: t, Env: s.Env}, db)
			})
		}
		s.Part("another's tables", func(s *servertest.Scene) {
			if foreign["one without tables"] == nil {
				s.Skip("that is one server")
			}
			s.Migrated(source, dialect.Prefix(s.Env.Dialect.Names().Prefix))
			refuse(s, foreign["one without tables"])
		})
		tx := s.Begin(s.Env.DB, nil)
		s.OK(l.Fence(s.Context(), tx))
		s.OK(tx.Commit())
		s.OK(l.Unlock(s.Context()))
	})
}

// Anything with a transaction's two methods works, and so does pgx itself.
func TestEveryKindOfTransactionCanBeFenced(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client()
		table := s.Ledger()
		use := func(key string, begin func() (tx rowlock.Tx, commit func() error)) {
			s.Helper()
			l := s.Take(c, key)
			tx, commit := begin()
			s.OK(l.Fence(s.Context(), tx))
			s.Add(tx, table)
			s.OK(l.UnlockTx(s.Context(), tx))
			s.OK(commit())
		}
		use("sql.Tx", func() (rowlock.Tx, func() error) {
			tx := s.Begin(s.Env.DB, nil)
			return tx, tx.Commit
		})
		use("sqlx.Tx", func() (rowlock.Tx, func() error) {
			tx, err := sqlx.NewDb(s.Env.DB, s.Env.Driver).Beginx()
			s.OK(err)
			return tx, tx.Commit
		})
		use("sql.Conn", func() (rowlock.Tx, func() error) {
			conn, err := s.Env.DB.Conn(s.Context())
			s.OK(err)
			s.Cleanup(func() { _ = conn.Close() })
			s.Exec(conn, `BEGIN`)
			return conn, func() error { _, err := conn.ExecContext(s.Context(), `COMMIT`); return err }
		})
		for _, key := range []string{"sql.Tx", "sqlx.Tx", "sql.Conn"} {
			s.OK(s.Take(c, key).Unlock(s.Context()))
		}
		if n := s.Number(`SELECT n FROM ` + table); n != 3 {
			s.Errorf("%d of 3 writes are there", n)
		}
	})
}

func TestATransactionOfPgxCanBeFenced(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		c := s.Client()
		for _, mode := range []string{
			"", "&default_query_exec_mode=simple_protocol", "&default_query_exec_mode=exec",
			"&default_query_exec_mode=cache_describe",
		} {
			conn, err := pgx.Connect(s.Context(), s.Env.Source+mode)
			s.OK(err)
			l := s.Take(c, "k")
			tx, err := conn.Begin(s.Context())
			s.OK(err)
			s.OK(postgres.Fence(s.Context(), tx, l))
			s.OK(postgres.UnlockTx(s.Context(), tx, l))
			s.OK(tx.Rollback(s.Context()))
			s.WantHeld(s.Client(), "k")
			tx, err = conn.Begin(s.Context())
			s.OK(err)
			s.OK(postgres.UnlockTx(s.Context(), tx, l))
			s.OK(tx.Commit(s.Context()))
			next := s.Take(c, "k")
			tx, err = conn.Begin(s.Context())
			s.OK(err)
			// The client looks after a COMMIT whether it has released, and may know by now.
			if err := postgres.Fence(s.Context(), tx, l); !errors.Is(err, rowlock.ErrFenced) && !errors.Is(err, rowlock.ErrUnlocked) {
				s.Errorf("a fence by a released lock: %v", err)
			}
			s.OK(tx.Rollback(s.Context()))
			s.OK(next.Unlock(s.Context()))
			s.OK(conn.Close(s.Context()))
		}
		l := s.Take(c, "k")
		other, err := pgx.Connect(s.Context(), elsewhere(s))
		s.OK(err)
		defer other.Close(context.Background())
		tx, err := other.Begin(s.Context())
		s.OK(err)
		s.WantErr(postgres.Fence(s.Context(), tx, l), rowlock.ErrForeignTx)
	})
}

func TestAClosedClientRefuses(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client()
		l := s.Take(c, "held")
		s.OK(c.Close())
		s.OK(c.Close())
		_, err := c.TryLock(s.Context(), "k")
		s.WantErr(err, rowlock.ErrClosed)
		_, err = c.Lock(s.Context(), "k")
		s.WantErr(err, rowlock.ErrClosed)
		s.WantErr(c.Do(s.Context(), "k",
			func(context.Context, *rowlock.Lock) error { s.Error("called"); return nil }), rowlock.ErrClosed)
		s.WantErr(context.Cause(l.Context()), rowlock.ErrUnlocked)
		for name, check := range servertest.Checks {
			tx := s.Begin(s.Env.DB, nil)
			if err := check(l, s.Context(), tx); !errors.Is(err, rowlock.ErrUnlocked) {
				s.Errorf("%s: %v, want %v", name, err, rowlock.ErrUnlocked)
			}
			s.OK(tx.Rollback())
		}
		s.WantErr(l.Unlock(s.Context()), rowlock.ErrUnlocked)
		next := s.Take(s.Client(), "held")
		if next.Token() != l.Token()+1 || s.Rows() != 1 {
			s.Errorf("token %d after %d; %d rows", next.Token(), l.Token(), s.Rows())
		}
		if n := s.Env.DB.Stats().InUse; n != 0 {
			s.Errorf("%d connections are still in use", n)
		}
	})
}

// A second Unlock returns ErrUnlocked and does nothing, whichever client holds the key by then.
func TestUnlockingTwiceHasNoEffect(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client()
		l := s.Take(c, "k")
		s.OK(l.Unlock(s.Context()))
		again := func() {
			s.Helper()
			s.WantErr(l.Unlock(s.Context()), rowlock.ErrUnlocked)
			for _, check := range servertest.Checks {
				tx := s.Begin(s.Env.DB, nil)
				s.WantErr(check(l, s.Context(), tx), rowlock.ErrUnlocked)
				s.OK(tx.Commit())
			}
		}
		again()
		next := s.Take(c, "k")
		again()
		s.WantHeld(s.Client(), "k")
		tx := s.Begin(s.Env.DB, nil)
		s.OK(next.Fence(s.Context(), tx))
		s.OK(tx.Commit())
		s.OK(next.Unlock(s.Context()))
		again()
	})
}

// In a pool each statement is a transaction of its own: a fence would pass, and end before the
// write that it is to protect.
func TestAPoolIsNoTransactionToFence(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		l := s.Take(s.Client(), "k")
		for name, check := range servertest.Checks {
			for _, tx := range []rowlock.Tx{
				s.Env.DB, sqlx.NewDb(s.Env.DB, s.Env.Driver), (*sql.Tx)(nil), nil,
			} {
				if err := check(l, s.Context(), tx); !errors.Is(err, rowlock.ErrConfig) ||
					!strings.Contains(err.Error(), "BeginTx") {
					s.Errorf("%s in %T: %v, want %v", name, tx, err, rowlock.ErrConfig)
				}
			}
		}
		for name, err := range map[string]error{
			"FenceIn": l.FenceIn(s.Context(), nil), "UnlockIn": l.UnlockIn(s.Context(), nil),
		} {
			if !errors.Is(err, rowlock.ErrConfig) {
				s.Errorf("%s in nil: %v, want %v", name, err, rowlock.ErrConfig)
			}
		}
		tx := s.Begin(s.Env.DB, nil)
		s.OK(l.Fence(s.Context(), tx))
		s.OK(tx.Commit())
	})
}
