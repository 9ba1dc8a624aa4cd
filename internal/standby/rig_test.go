package standby_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/schema"
)

const (
	ttl      = 5 * time.Minute
	patience = 60 * time.Second
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// rig is a pair of servers with rowlock's tables.
type rig struct{ *standby.Pair }

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{standby.Start(t)}
	if err := schema.Migrate(t.Context(), r.DB, postgres.New()); err != nil {
		t.Fatal(err)
	}
	return r
}

func pool(t *testing.T, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// relaying is a pool that asks the server to cancel what a context has ended for, and reads the
// answer.
func relaying(t *testing.T, source string) *sql.DB {
	t.Helper()
	cfg, err := pgx.ParseConfig(source)
	if err != nil {
		t.Fatal(err)
	}
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: patience}
	}
	db := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func open(t *testing.T, db *sql.DB, fair bool) *rowlock.Client {
	t.Helper()
	c, err := rowlock.Open(db, postgres.New(), &rowlock.Config{
		TTL: ttl, Fair: fair, Hints: rowlock.HintsOff, Logger: quiet, Reaper: rowlock.ReaperConfig{Off: true},
		PollMin: 10 * time.Millisecond, PollMax: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func openOnce(t *testing.T, db *sql.DB) *once.Once {
	t.Helper()
	o, err := once.New(db, postgres.New(), &once.Config{Reap: -1, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// told is what a call has said.
type told[A any] struct {
	answer A
	err    error
}

func begin[A any](f func() (A, error)) <-chan told[A] {
	c := make(chan told[A], 1)
	go func() {
		a, err := f()
		c <- told[A]{a, err}
	}()
	return c
}

// untold fails the test if the call has said anything.
func untold[A any](t *testing.T, c <-chan told[A]) {
	t.Helper()
	select {
	case got := <-c:
		t.Fatalf("told %+v, %v while the standby hangs", got.answer, got.err)
	default:
	}
}

func heard[A any](t *testing.T, c <-chan told[A]) told[A] {
	t.Helper()
	select {
	case got := <-c:
		return got
	case <-time.After(patience):
		t.Fatal("told nothing")
		panic("unreachable")
	}
}

// visible returns once the row can be read to be held, which was committed and never acknowledged.
func (r *rig) visible(t *testing.T, query string, args ...any) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		var yes bool
		if err := r.DB.QueryRowContext(t.Context(), query, args...).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		if yes {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: it did not come about", query)
		}
	}
}

const isHeld = `SELECT EXISTS (SELECT 1 FROM rowlock WHERE key = $1 AND owner IS NOT NULL AND expires_at > clock_timestamp())`

// unacknowledged brings a call to where its commit can be read and was not acknowledged, and the
// next commit, which is to confirm it, waits too.
func (r *rig) unacknowledged(t *testing.T, key string) {
	t.Helper()
	r.AwaitCommits(t, 1)
	r.CutWaits(t)
	r.visible(t, isHeld, []byte(key))
	r.AwaitCommits(t, 1)
}

func wantUnknown(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, lease.ErrUnknown) {
		t.Errorf("got %v, want that the outcome is unknown", err)
	}
}

func tryLock(ctx context.Context, c *rowlock.Client, key string) <-chan told[*rowlock.Lock] {
	return begin(func() (*rowlock.Lock, error) { return c.TryLock(ctx, key) })
}
