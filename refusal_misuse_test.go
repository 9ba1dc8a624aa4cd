package rowlock_test

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
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// checks are the two calls inside the caller's transaction, which refuse alike.
var checks = map[string]func(l *rowlock.Lock, ctx context.Context, tx rowlock.Tx) error{
	"Fence":    (*rowlock.Lock).Fence,
	"UnlockTx": (*rowlock.Lock).UnlockTx,
}

// elsewhere is a database of the same product with no tables of rowlock's.
func (s *scene) elsewhere() (source string) {
	s.Helper()
	name := s.env.Dialect.Names().Prefix + "elsewhere"
	switch s.env.Driver {
	case "sqlite":
		return s.env.Kind.DSN(s)
	case "pgx":
		s.exec(s.env.DB, `CREATE DATABASE `+name)
		s.Cleanup(func() { s.env.Exec(s, `DROP DATABASE `+name+` WITH (FORCE)`) })
		u, err := url.Parse(s.env.Source)
		s.ok(err)
		u.Path = "/" + name
		return u.String()
	}
	s.exec(s.env.DB, `CREATE DATABASE `+name)
	s.Cleanup(func() { s.env.Exec(s, `DROP DATABASE `+name) })
	return s.env.Source[:strings.LastIndex(s.env.Source, "/")+1] + name
}

// A fence in another database than the lock's would protect nothing: it must not pass, and not be taken for a lost lock.
func TestAFenceInATransactionOfAnotherDatabaseIsRefused(t *testing.T) {
	eachScene(t, func(s *scene) {
		l := s.take(s.client(), "k")
		source := s.elsewhere()
		foreign := map[string]*sql.DB{"one without tables": s.dial(s.env.Driver, source)}
		for _, k := range testdb.Kinds {
			if k.Driver != s.env.Driver {
				foreign[k.Name] = nil
			}
		}
		refuse := func(s *scene, db *sql.DB) {
			for name, check := range checks {
				tx := s.begin(db, nil)
				err := check(l, s.Context(), tx)
				if !errors.Is(err, rowlock.ErrForeignTx) || errors.Is(err, rowlock.ErrFenced) || !strings.Contains(err.Error(), "given to Open") {
					s.Errorf("%s: %v, want %v", name, err, rowlock.ErrForeignTx)
				}
				s.ok(tx.Rollback())
			}
		}
		for name, db := range foreign {
			s.Run(name, func(t *testing.T) {
				if db == nil {
					db = kindNamed(name).Open(t).DB
				}
				refuse(&scene{t, s.env}, db)
			})
		}
		s.part("another's tables", func(s *scene) {
			s.migrated(source, dialect.Prefix(s.env.Dialect.Names().Prefix))
			refuse(s, foreign["one without tables"])
		})
		tx := s.begin(s.env.DB, nil)
		s.ok(l.Fence(s.Context(), tx))
		s.ok(tx.Commit())
		s.ok(l.Unlock(s.Context()))
	})
}

func kindNamed(name string) testdb.Kind {
	for _, k := range testdb.Kinds {
		if k.Name == name {
			return k
		}
	}
	panic(name)
}

// Everything that has a transaction's two methods will do, and so will pgx itself.
func TestEveryKindOfTransactionCanBeFenced(t *testing.T) {
	eachScene(t, func(s *scene) {
		c := s.client()
		table := s.ledger()
		use := func(key string, begin func() (tx rowlock.Tx, commit func() error)) {
			s.Helper()
			l := s.take(c, key)
			tx, commit := begin()
			s.ok(l.Fence(s.Context(), tx))
			s.add(tx, table)
			s.ok(l.UnlockTx(s.Context(), tx))
			s.ok(commit())
		}
		use("sql.Tx", func() (rowlock.Tx, func() error) {
			tx := s.begin(s.env.DB, nil)
			return tx, tx.Commit
		})
		use("sqlx.Tx", func() (rowlock.Tx, func() error) {
			tx, err := sqlx.NewDb(s.env.DB, s.env.Driver).Beginx()
			s.ok(err)
			return tx, tx.Commit
		})
		use("sql.Conn", func() (rowlock.Tx, func() error) {
			conn, err := s.env.DB.Conn(s.Context())
			s.ok(err)
			s.Cleanup(func() { _ = conn.Close() })
			s.exec(conn, `BEGIN`)
			return conn, func() error { _, err := conn.ExecContext(s.Context(), `COMMIT`); return err }
		})
		for _, key := range []string{"sql.Tx", "sqlx.Tx", "sql.Conn"} {
			s.ok(s.take(c, key).Unlock(s.Context()))
		}
		if n := s.number(`SELECT n FROM ` + table); n != 3 {
			s.Errorf("%d of 3 writes are there", n)
		}
	})
}

func TestATransactionOfPgxCanBeFenced(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		c := s.client()
		for _, mode := range []string{"", "&default_query_exec_mode=simple_protocol", "&default_query_exec_mode=exec", "&default_query_exec_mode=cache_describe"} {
			conn, err := pgx.Connect(s.Context(), s.env.Source+mode)
			s.ok(err)
			l := s.take(c, "k")
			tx, err := conn.Begin(s.Context())
			s.ok(err)
			s.ok(postgres.Fence(s.Context(), tx, l))
			s.ok(postgres.UnlockTx(s.Context(), tx, l))
			s.ok(tx.Rollback(s.Context()))
			s.wantHeld(s.client(), "k")
			tx, err = conn.Begin(s.Context())
			s.ok(err)
			s.ok(postgres.UnlockTx(s.Context(), tx, l))
			s.ok(tx.Commit(s.Context()))
			next := s.take(c, "k")
			tx, err = conn.Begin(s.Context())
			s.ok(err)
			s.wantErr(postgres.Fence(s.Context(), tx, l), rowlock.ErrFenced)
			s.ok(tx.Rollback(s.Context()))
			s.ok(next.Unlock(s.Context()))
			s.ok(conn.Close(s.Context()))
		}
		l := s.take(c, "k")
		other, err := pgx.Connect(s.Context(), s.elsewhere())
		s.ok(err)
		defer other.Close(context.Background())
		tx, err := other.Begin(s.Context())
		s.ok(err)
		s.wantErr(postgres.Fence(s.Context(), tx, l), rowlock.ErrForeignTx)
	})
}

func TestAClosedClientRefuses(t *testing.T) {
	eachScene(t, func(s *scene) {
		c := s.client()
		l := s.take(c, "held")
		s.ok(c.Close())
		s.ok(c.Close())
		_, err := c.TryLock(s.Context(), "k")
		s.wantErr(err, rowlock.ErrClosed)
		_, err = c.Lock(s.Context(), "k")
		s.wantErr(err, rowlock.ErrClosed)
		s.wantErr(c.Do(s.Context(), "k", func(context.Context, *rowlock.Lock) error { s.Error("called"); return nil }), rowlock.ErrClosed)
		s.wantErr(context.Cause(l.Context()), rowlock.ErrUnlocked)
		for name, check := range checks {
			tx := s.begin(s.env.DB, nil)
			if err := check(l, s.Context(), tx); !errors.Is(err, rowlock.ErrUnlocked) {
				s.Errorf("%s: %v, want %v", name, err, rowlock.ErrUnlocked)
			}
			s.ok(tx.Rollback())
		}
		s.wantErr(l.Unlock(s.Context()), rowlock.ErrUnlocked)
		next := s.take(s.client(), "held")
		if next.Token() != l.Token()+1 || s.rows() != 1 {
			s.Errorf("token %d after %d; %d rows", next.Token(), l.Token(), s.rows())
		}
		if n := s.env.DB.Stats().InUse; n != 0 {
			s.Errorf("%d connections are still in use", n)
		}
	})
}

// A second Unlock says so and does nothing, whoever has the key by then.
func TestUnlockingTwiceHasNoEffect(t *testing.T) {
	eachScene(t, func(s *scene) {
		c := s.client()
		l := s.take(c, "k")
		s.ok(l.Unlock(s.Context()))
		again := func() {
			s.Helper()
			s.wantErr(l.Unlock(s.Context()), rowlock.ErrUnlocked)
			for _, check := range checks {
				tx := s.begin(s.env.DB, nil)
				s.wantErr(check(l, s.Context(), tx), rowlock.ErrUnlocked)
				s.ok(tx.Commit())
			}
		}
		again()
		next := s.take(c, "k")
		again()
		s.wantHeld(s.client(), "k")
		tx := s.begin(s.env.DB, nil)
		s.ok(next.Fence(s.Context(), tx))
		s.ok(tx.Commit())
		s.ok(next.Unlock(s.Context()))
		again()
	})
}

// In a pool each statement is a transaction of its own: a fence would pass, and be over before what it is to protect is written.
func TestAPoolIsNoTransactionToFence(t *testing.T) {
	eachScene(t, func(s *scene) {
		l := s.take(s.client(), "k")
		for name, check := range checks {
			for _, tx := range []rowlock.Tx{s.env.DB, sqlx.NewDb(s.env.DB, s.env.Driver), (*sql.Tx)(nil), nil} {
				if err := check(l, s.Context(), tx); !errors.Is(err, rowlock.ErrConfig) || !strings.Contains(err.Error(), "BeginTx") {
					s.Errorf("%s in %T: %v, want %v", name, tx, err, rowlock.ErrConfig)
				}
			}
		}
		for name, err := range map[string]error{"FenceIn": l.FenceIn(s.Context(), nil), "UnlockIn": l.UnlockIn(s.Context(), nil)} {
			if !errors.Is(err, rowlock.ErrConfig) {
				s.Errorf("%s in nil: %v, want %v", name, err, rowlock.ErrConfig)
			}
		}
		tx := s.begin(s.env.DB, nil)
		s.ok(l.Fence(s.Context(), tx))
		s.ok(tx.Commit())
	})
}
