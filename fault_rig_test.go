package rowlock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

const (
	// faultTTL is far longer than any test: what comes free was released, and did not expire.
	faultTTL = 5 * time.Minute
	// freeSoon is how soon what a caller left behind must be free again.
	freeSoon = 4 * time.Second
	// faultPatience bounds what must come to an end.
	faultPatience = 20 * time.Second
	// faultPromptly is how soon a caller who left must be back.
	faultPromptly = 2 * time.Second
)

// faulty is a client whose connections can be broken, beside one on the same tables whose cannot.
type faulty struct {
	*testdb.Env
	*rowlock.Client
	other  *rowlock.Client
	pool   *sql.DB // of the client that can be broken
	faults *faultdb.Switch
	log    *faultdb.Log
}

// faultConfig is quiet, does not sweep, and leases for long.
func faultConfig(change func(*rowlock.Config)) *rowlock.Config {
	cfg := &rowlock.Config{TTL: faultTTL, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}}
	if change != nil {
		change(cfg)
	}
	return cfg
}

func newFaulty(tb testing.TB, e *testdb.Env, change func(*rowlock.Config)) *faulty {
	tb.Helper()
	f := &faulty{Env: e, faults: &faultdb.Switch{}, log: &faultdb.Log{}}
	db, err := faultdb.Open(e.Driver, e.Source, faultdb.Any(f.log, f.faults))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	f.pool = db
	f.Client = openOn(tb, f.pool, e, change)
	f.other = openOn(tb, e.DB, e, nil)
	return f
}

func openOn(tb testing.TB, db *sql.DB, e *testdb.Env, change func(*rowlock.Config)) *rowlock.Client {
	tb.Helper()
	c, err := rowlock.Open(db, e.Dialect, faultConfig(change))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return c
}

// locked returns the lock of a call that was to succeed.
func locked(tb testing.TB) func(l *rowlock.Lock, err error) *rowlock.Lock {
	return func(l *rowlock.Lock, err error) *rowlock.Lock {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return l
	}
}

// wantFreeSoon sees that somebody else gets the key, long before its lease would have expired.
func (f *faulty) wantFreeSoon(tb testing.TB, key string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), freeSoon)
	defer cancel()
	l, err := f.other.Lock(ctx, key)
	if err != nil {
		tb.Fatalf("%q was left behind: %v", key, err)
	}
	if err := l.Unlock(ctx); err != nil {
		tb.Errorf("the next holder of %q: %v", key, err)
	}
}

// row is what the table says of a key.
func (f *faulty) row(tb testing.TB, key string) (owner []byte, token int64) {
	tb.Helper()
	return rowOf(tb, f.Env, key)
}

func rowOf(tb testing.TB, e *testdb.Env, key string) (owner []byte, token int64) {
	tb.Helper()
	err := e.DB.QueryRowContext(context.Background(), e.SQL(`SELECT owner, token FROM {rowlock} WHERE {key} = ?`), []byte(key)).Scan(&owner, &token)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		tb.Fatal(err)
	}
	return owner, token
}

// leaseLeft is how long a key's lease lasts by the database's clock, to the second; it is asked for on a pool of the test's own.
func leaseLeft(tb testing.TB, e *testdb.Env, key string) time.Duration {
	tb.Helper()
	micros := map[string]string{
		"sqlite": `(expires_at - {now}) * 1000`, "pgx": `(extract(epoch FROM expires_at - {now}) * 1000000)::bigint`,
		"mysql": `TIMESTAMPDIFF(MICROSECOND, {now}, expires_at)`,
	}[e.Driver]
	var n int64
	if err := e.DB.QueryRowContext(context.Background(), e.SQL(`SELECT `+micros+` FROM {rowlock} WHERE {key} = ?`), []byte(key)).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(n) * time.Microsecond
}

// section matches the executions of a section of the dialect's.
func (f *faulty) section(name string) func(faultdb.Op) bool {
	text := f.Dialect.Text(name)
	return func(op faultdb.Op) bool { return op.Executes() && op.Query == text }
}

// grants matches the statements that may grant: what sets the time of acquisition.
func grants(op faultdb.Op) bool {
	return op.Executes() && (strings.Contains(op.Query, "acquired_at =") || strings.Contains(op.Query, "note, token, acquired_at, expires_at, home)"))
}

// acquires matches the statements of an acquire, and the look that some dialects begin with.
func acquires(op faultdb.Op) bool {
	return grants(op) || op.Executes() && strings.Contains(op.Query, "END AS state")
}

func wantErr(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("got error %v, want %v", err, target)
		}
	}
}

func wantLives(tb testing.TB, l *rowlock.Lock) {
	tb.Helper()
	if err := context.Cause(l.Context()); err != nil {
		tb.Errorf("the lock on %q is over: %v", l.Key(), err)
	}
}

// aside runs f beside the test and returns where its error comes.
func aside(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	return result
}

// arrives returns what comes over c, which must come in time.
func arrives[T any](tb testing.TB, limit time.Duration, c <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-c:
	case <-time.After(limit):
		tb.Fatalf("waited %s in vain for %s", limit, what)
	}
	return v
}

// comesTrue asks again and again until ok.
func comesTrue(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(faultPatience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain for %s", what)
		}
	}
}

var brokenReports = []struct {
	name string
	err  error
}{
	{"ErrBadConn", driver.ErrBadConn},
	{"ErrUnexpectedEOF", io.ErrUnexpectedEOF},
}
