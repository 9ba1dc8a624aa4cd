package optimistic_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/optimistic"
)

// The suite that every store must pass.
func TestConformance(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		h := harness(e)
		other := testdb.Kinds[0].Open(t) // a database that has nothing to do with e's
		h.Foreign = func(tb testing.TB) locktest.Tx { return begin(tb, other) }
		locktest.Run(t, h)
	})
}

func TestRandomCalls(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		h := harness(e)
		h.Slow = true
		locktest.RunRandom(t, h, 4)
	})
}

// patient lets a batch of 1200 take longer than the default on a shared machine.
var patient = optimistic.Timeout(20 * time.Second)

func harness(e *testdb.Env) locktest.Harness {
	empty := func(tb testing.TB, _ lease.Store) {
		tb.Helper()
		e.Exec(tb, `DELETE FROM {rowlock}`)
		e.Exec(tb, `DELETE FROM {rowlock_queue}`)
		e.Exec(tb, `DELETE FROM {rowlock_wait}`)
	}
	return locktest.Harness{
		Open: func(tb testing.TB) lease.Store {
			empty(tb, nil)
			return open(tb, e, patient)
		},
		Another: func(tb testing.TB, _ lease.Store) lease.Store { return open(tb, e, patient) },
		Empty:   testdb.InShort(empty),
		Expire: func(tb testing.TB, _ lease.Store, key string) {
			e.Exec(tb, `UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ? AND owner IS NOT NULL`, []byte(key))
		},
		SetToken: func(tb testing.TB, _ lease.Store, key string, token lease.Token) { e.SetToken(tb, key, token) },
		Begin:    func(tb testing.TB, _ lease.Store) locktest.Tx { return begin(tb, e) },
		SerialTx: e.Name == "sqlite",
		// MySQL waits for a second where others wait for a moment.
		Slow: true,
		Load: 250 * time.Millisecond,
	}
}

func open(tb testing.TB, e *testdb.Env, opts ...optimistic.Option) *optimistic.Store {
	tb.Helper()
	s, err := optimistic.New(e.DB, e.Dialect, append([]optimistic.Option{optimistic.Connections(3)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func begin(tb testing.TB, e *testdb.Env) locktest.Tx {
	tb.Helper()
	tx, err := e.DB.BeginTx(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return locktest.SQL(tx)
}
