package locktest

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// ownFloors lets a store start new rows from floors of the mutant's own making: floor is told which
// rows a sweep removed.
func ownFloors(floor func(floors map[int]lease.Token, removed lease.Lease)) func(m *mutant) {
	return func(m *mutant) {
		var mu sync.Mutex
		floors := make(map[int]lease.Token)
		m.sweep = func(ctx context.Context, opts lease.SweepOptions) (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			before, _ := m.Inspect(ctx, lease.Filter{Limit: 1 << 20})
			n, err := m.fencing.Sweep(ctx, opts)
			for _, row := range before {
				if _, left := m.row(row.Key); !left {
					floor(floors, row.Lease)
				}
			}
			return n, err
		}
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			mu.Lock()
			defer mu.Unlock()
			if _, known := m.row(q.Key); known || q.Key == "" {
				return m.ask(q)
			}
			return m.force(q, floors[lease.Bucket(q.Key)]+1)
		})
	}
}

var tokenFlaws = []flaw{
	// The reaper that takes the counter with it.
	{"tokens begin at 1 again after a sweep", ownFloors(func(map[int]lease.Token, lease.Lease) {}), []string{
		"tokens grow across release, expiry, takeover, sweeping and re-creation",
		"tokens go on growing while a sweeper runs",
	}},
	{"a floor is the token of the row that was removed last", ownFloors(func(floors map[int]lease.Token, removed lease.Lease) {
		floors[lease.Bucket(removed.Key)] = removed.Token
	}), []string{"a floor that keys share is never lowered"}},
	{"tokens wrap", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Token >= lease.MaxToken-1 && !row.Held {
				m.SetToken(q.Key, 0)
			}
			return m.ask(q)
		})
	}, []string{"a key whose tokens have run out is refused"}},
	{"a key whose tokens have run out is said to be held", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Token >= lease.MaxToken-1 && !row.Held {
				return lease.Acquired{}
			}
			return m.ask(q)
		})
	}, []string{"a key whose tokens have run out is refused"}},
}

var sweepFlaws = []flaw{
	{"a sweep takes held rows along", func(m *mutant) {
		m.sweep = func(ctx context.Context, opts lease.SweepOptions) (int64, error) {
			rows, _ := m.Inspect(ctx, lease.Filter{})
			for _, row := range rows {
				m.Expire(row.Key)
			}
			return m.fencing.Sweep(ctx, opts)
		}
	}, []string{"a sweep leaves held rows"}},
	{"a sweep miscounts", func(m *mutant) {
		m.sweep = func(ctx context.Context, opts lease.SweepOptions) (int64, error) {
			n, err := m.fencing.Sweep(ctx, opts)
			return min(n, int64(opts.Batch)), err
		}
	}, []string{"a sweep removes dead rows batch after batch and counts them"}},
	{"a sweep knows no retention", func(m *mutant) {
		m.sweep = func(ctx context.Context, opts lease.SweepOptions) (int64, error) {
			opts.Retention = 0
			return m.fencing.Sweep(ctx, opts)
		}
	}, []string{"a sweep leaves rows that died within the retention"}},
	{"a sweep takes a negative retention for its amount", func(m *mutant) {
		m.sweep = func(ctx context.Context, opts lease.SweepOptions) (int64, error) {
			opts.Retention = opts.Retention.Abs()
			return m.fencing.Sweep(ctx, opts)
		}
	}, []string{"a sweep leaves rows that died within the retention"}},
	{"a sweep that is stopped says it removed nothing", func(m *mutant) {
		m.sweep = func(ctx context.Context, opts lease.SweepOptions) (int64, error) {
			n, err := m.fencing.Sweep(ctx, opts)
			if err != nil {
				return 0, err
			}
			return n, nil
		}
	}, []string{"a sweep stops when its context ends and says how far it came"}},
	{
		"a sweep removes rows that a transaction has locked", func(m *mutant) { m.sweep = m.Store.Sweep },
		[]string{"a sweep leaves a row that a fence has"},
	},
}
