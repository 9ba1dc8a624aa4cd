package refusal

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
)

// silent is a server that takes connections and never answers.
func silent(s *servertest.Scene) (address string) {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.OK(err)
	s.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, conn) // until the client closes it
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

type opener func(ctx context.Context, db *sql.DB, d dialect.Dialect) error

// openers are all that connect. None of them succeeds here.
var openers = map[string]opener{
	"rowlock.OpenContext": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		_, err := rowlock.OpenContext(ctx, db, d, servertest.Config())
		return err
	},
	"rowlock.OpenTableContext": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		_, err := rowlock.OpenTableContext(ctx, db, d, servertest.Config())
		return err
	},
	"forupdate.NewContext": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		_, err := forupdate.NewContext(ctx, db, d)
		return err
	},
	"forupdate.NewLockerContext": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		_, err := forupdate.NewLockerContext(ctx, db, d)
		return err
	},
	"optimistic.NewContext": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		_, err := optimistic.NewContext(ctx, db, d)
		return err
	},
	"once.NewContext": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		_, err := once.NewContext(ctx, db, d, nil)
		return err
	},
}

func TestOpeningASilentServerEndsWithItsContext(t *testing.T) {
	s := &servertest.Scene{T: t}
	address := silent(s)
	for name, open := range openers {
		for driver, d := range map[string]dialect.Dialect{"pgx": postgres.New(), "mysql": mysql.New()} {
			t.Run(name+" "+driver, func(t *testing.T) {
				source := "user@tcp(" + address + ")/x"
				if driver == "pgx" {
					source = "postgres://user@" + address + "/x?sslmode=disable"
				}
				s := &servertest.Scene{T: t}
				db := s.Dial(driver, source)
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				began := time.Now()
				err := open(ctx, db, d)
				if took := time.Since(began); took > servertest.Promptly {
					s.Errorf("took %s", took)
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					s.Errorf("got %v, want %v", err, context.DeadlineExceeded)
				}
				if n := db.Stats().InUse; n != 0 {
					s.Errorf("%d connections are still in use", n)
				}
			})
		}
	}
}

func TestNothingIsOpenedWithAContextThatHasEnded(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		ended, cancel := context.WithCancel(s.Context())
		cancel()
		for name, open := range openers {
			if name == "forupdate.NewContext" && s.Is("sqlite") {
				continue // unsupported there
			}
			db := s.Env.Pool(s)
			if err := open(ended, db, s.Env.Dialect); !errors.Is(err, context.Canceled) {
				s.Errorf("%s: got %v, want %v", name, err, context.Canceled)
			}
			if n := db.Stats().InUse; n != 0 {
				s.Errorf("%s: %d connections are still in use", name, n)
			}
		}
	})
}

// The context of OpenContext is of the opening alone.
func TestAClientOutlivesTheContextItWasOpenedWith(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		ctx, cancel := context.WithCancel(s.Context())
		c, err := rowlock.OpenContext(ctx, s.Env.Pool(s), s.Env.Dialect, servertest.Config())
		s.OK(err)
		cancel()
		l := s.Take(c, "k")
		s.OK(l.Unlock(s.Context()))
		s.OK(c.Close())
	})
}
