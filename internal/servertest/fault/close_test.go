package fault

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	tablecount "github.com/rowlockdb/rowlock/internal/counted"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// plain hides the optional abilities of a store; showing unwraps to it.
type (
	plain   struct{ lease.Store }
	showing struct{ plain }
)

func (s showing) Unwrap() lease.Store { return s.Store }

// paired is a table that is always asked for two keys: a batch runs on a goroutine of the pinned
// connections, which goes on when its caller leaves. A single request runs on its caller's.
type paired struct{ rowlock.Table }

func (p paired) Unwrap() lease.Store { return p.Table }

func (p paired) Acquire(ctx context.Context,
	reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	second := lease.AcquireRequest{
		Key: reqs[0].Key + ", second", Owner: lease.NewOwner(), TTL: servertest.LongTTL,
	}
	answers, err := p.Table.Acquire(ctx, []lease.AcquireRequest{reqs[0], second})
	if err != nil {
		return nil, err
	}
	return answers[:1], answers[0].Err
}

// bridged is a table with a bridge before it, and a cluster in memory behind that.
func bridged(tb testing.TB, table paxosbridge.Table) lease.Store {
	tb.Helper()
	b, err := paxosbridge.New(context.Background(), table, memcluster.New(),
		&paxosbridge.Config{Every: -1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = b.Close() })
	return b
}

var wrapped = map[string]func(testing.TB, rowlock.Table) lease.Store{
	"a table":  func(_ testing.TB, t rowlock.Table) lease.Store { return t },
	"a bridge": func(tb testing.TB, t rowlock.Table) lease.Store { return bridged(tb, t) },
	"a bridge, a counter": func(tb testing.TB, t rowlock.Table) lease.Store {
		return bridged(tb, tablecount.Count(t))
	},
	"a decorator": func(_ testing.TB, t rowlock.Table) lease.Store { return showing{plain{t}} },
	"two decorators, a bridge": func(tb testing.TB, t rowlock.Table) lease.Store {
		return showing{plain{showing{plain{bridged(tb, t)}}}}
	},
	"a decorator that hides": func(_ testing.TB, t rowlock.Table) lease.Store { return plain{t} },
}

// Whatever wraps the table, Close waits for an acquire that runs on after its caller has left,
// and then releases its grant. Otherwise the key would stay held for a TTL.
func TestCloseWaitsForWhatRunsOnBehindAnyStore(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for name, wrap := range wrapped {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFaulty(t, e, nil)
				table, err := rowlock.OpenTable(f.pool, e.Dialect, servertest.LongConfig(nil))
				if err != nil {
					t.Fatal(err)
				}
				defer table.Close()
				locks, err := rowlock.New(wrap(t, paired{table}), servertest.LongConfig(nil))
				if err != nil {
					t.Fatal(err)
				}
				f.Client = locks
				closeBehind(t, f, name)
				if owner, _ := f.row(t, name); owner != nil {
					t.Error("Close has left a key that is held for a TTL")
				}
			})
		}
	})
}

// closeBehind closes the client while the statement that grants a key to a caller that left is
// held.
func closeBehind(t *testing.T, f *faulty, key string) {
	gate := faultdb.NewGate()
	defer gate.Release()
	f.faults.Set(faultdb.OnFunc(grants, faultdb.Nth(1, faultdb.Block(gate))))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := servertest.Aside(func() error { _, err := f.TryLock(ctx, key); return err })
	servertest.Await(t, servertest.Patience, gate.Arrived(), "the statement that grants")
	cancel()
	servertest.WantErr(t, servertest.Await(t, servertest.Promptly, left, "the canceled call"),
		rowlock.ErrUnknown)
	closed := make(chan error)
	go func() {
		err := f.Close()
		close(closed)
		if err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	select {
	case <-closed:
		t.Error("Close returned while an acquire was running")
	// it can only fail if Close is quick, which without a mend it is
	case <-time.After(200 * time.Millisecond):
	}
	gate.Release()
	servertest.Await(t, servertest.Patience, closed, "Close")
}
