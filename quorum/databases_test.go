package quorum_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/quorum"
)

// databases are members on real databases, each with tables of its own.
type databases []*testdb.Env

// open returns a quorum over the databases, as one process has it.
func (d databases) open(tb testing.TB, cfg quorum.Config) *quorum.Store {
	tb.Helper()
	stores := make([]lease.Store, len(d))
	for i, e := range d {
		table, err := rowlock.OpenTable(e.DB, e.Dialect, nil)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = table.Close() })
		stores[i] = table
	}
	s, err := quorum.NewWith(cfg, stores...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// settled is a quorum that inspects when every member has what calls have left running there. Else
// it may read members that have not been renewed yet, and tell the time that those agree on.
type settled struct {
	*quorum.Store
	settle func()
}

func (s settled) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	s.settle()
	return s.Store.Inspect(ctx, f)
}

// harness is for the suite. Its hooks wait for what calls have left running at members, and so does
// Inspect unless calls are concurrent, which would leave no end to wait for.
func (d databases) harness(concurrent bool) locktest.Harness {
	patient := quorum.Config{Timeout: 20 * time.Second} // the machine is shared
	var opened []*quorum.Store
	settle := func() {
		for _, s := range opened {
			s.Settle(context.Background())
		}
	}
	open := func(tb testing.TB) lease.Store {
		s := d.open(tb, patient)
		opened = append(opened, s)
		if concurrent {
			return s
		}
		return settled{s, settle}
	}
	empty := func(tb testing.TB, _ lease.Store) {
		tb.Helper()
		for _, e := range d {
			e.Exec(tb, `DELETE FROM {rowlock}`)
			e.Exec(tb, `UPDATE {rowlock_floor} SET floor = 0`)
		}
	}
	return locktest.Harness{
		Open: func(tb testing.TB) lease.Store {
			opened = nil
			empty(tb, nil)
			return open(tb)
		},
		Another: func(tb testing.TB, _ lease.Store) lease.Store { return open(tb) },
		Empty:   testdb.InShort(empty),
		Expire: func(tb testing.TB, _ lease.Store, key string) {
			settle()
			for _, e := range d {
				// Also where it is free: a member that was too late has given its grant back.
				e.Exec(tb, `UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ?`, []byte(key))
			}
		},
		SetToken: func(tb testing.TB, _ lease.Store, key string, token lease.Token) {
			settle()
			for _, e := range d {
				e.SetToken(tb, key, token)
			}
		},
		Steady: true, Slow: true, Load: time.Second,
	}
}

// mixed are five members on four products. Skips aloud without the servers.
func mixed(t *testing.T) databases {
	var d databases
	for _, k := range testdb.Kinds {
		d = append(d, k.Open(t))
	}
	return append(d, testdb.Kinds[0].Open(t))
}

func TestConformanceOnDatabases(t *testing.T) {
	t.Run("three SQLite files", func(t *testing.T) {
		var d databases
		for range 3 {
			d = append(d, testdb.Kinds[0].Open(t))
		}
		locktest.Run(t, d.harness(false))
	})
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " of different products"), func(t *testing.T) {
			if n == 3 && !testdb.Whole() {
				t.Skip("five of them have all products, and the files are three: make conformance")
			}
			locktest.Run(t, mixed(t)[5-n:].harness(false))
		})
	}
}

func TestRandomCallsOnDatabases(t *testing.T) {
	locktest.RunRandom(t, mixed(t)[2:].harness(true), 10)
}
