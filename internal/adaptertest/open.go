package adaptertest

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Open returns the client of a process. Its locks outlive each pause of a busy machine, and it learns
// of a loss as soon as one of the workers does.
func Open(t *testing.T, e *testdb.Env) *rowlock.Client {
	t.Helper()
	c, err := rowlock.Open(e.Pool(t), e.Dialect, &rowlock.Config{TTL: 15 * time.Second, RenewEvery: TTL / 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// CountTicks counts on each database what two ticks of a job cost, in statements, that no other
// process wants. Before the first the key's lease has run out, if the job left it to. A tick before
// these opens the connection.
func CountTicks(
	t *testing.T, key string, want map[string][2]int,
	job func(t *testing.T, locks *rowlock.Client) (tick func(t *testing.T)),
) {
	t.Helper()
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			e := k.Open(t)
			locks, log := logged(t, e)
			tick := job(t, locks)
			tick(t)
			e.Expire(t, key)
			for i, n := range want[k.Name] {
				log.Reset()
				tick(t)
				if q := log.Queries(); len(q) != n {
					t.Errorf("tick %d: %d statements, want %d: %q", i, len(q), n, q)
				}
			}
		})
	}
}

// logged is Open of a client whose statements are seen. Its leases are not renewed meanwhile.
func logged(t *testing.T, e *testdb.Env) (*rowlock.Client, *faultdb.Log) {
	t.Helper()
	log := &faultdb.Log{}
	db, err := faultdb.Open(e.Driver, e.Source, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c, err := rowlock.Open(db, e.Dialect, &rowlock.Config{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, log
}

// Steal has another process take a key that is held, as if its holder's lease had run out. Its
// holder learns of it by the next renewal.
func Steal(t *testing.T, e *testdb.Env, key string) *rowlock.Lock {
	t.Helper()
	e.Expire(t, key)
	l, err := Open(t, e).TryLock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Force has an operator take a key away, also from a transaction that fences it.
func Force(t *testing.T, e *testdb.Env, key string) {
	t.Helper()
	if _, err := Open(t, e).ForceRelease(t.Context(), key, rowlock.Force{Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
}

// WantIs fails the test unless an error wraps another.
func WantIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// Nothing is a transaction that only fences.
func Nothing(context.Context, *sql.Tx) error { return nil }

// Eventually waits until something is so.
func Eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for began := time.Now(); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}
