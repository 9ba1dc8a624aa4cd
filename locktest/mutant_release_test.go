package locktest

import (
	"context"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var releaseFlaws = []flaw{
	{"a release does nothing", func(m *mutant) {
		m.eachRelease(func(l lease.Lease) lease.Released {
			row, _ := m.row(l.Key)
			return lease.Released{Gone: row.Lease != l}
		})
	}, []string{"a released key is granted with a higher token", "64 owners race for a released key and one gets it"}},
	// spring-integration#9292.
	{"a release never says gone", func(m *mutant) {
		m.eachRelease(func(l lease.Lease) lease.Released { m.free(l); return lease.Released{} })
	}, []string{
		"a second release says gone", "a release of an unknown key says gone",
		"concurrent calls could have happened one after another",
	}},
	{"token 0 is a token like any other", func(m *mutant) {
		m.eachRelease(func(l lease.Lease) lease.Released {
			if l.Token == 0 {
				return lease.Released{Gone: true}
			}
			return m.free(l)
		})
	}, []string{"token 0 releases whatever the owner was given"}},
	{"a release ignores the token", func(m *mutant) {
		m.eachRelease(func(l lease.Lease) lease.Released { l.Token = 0; return m.free(l) })
	}, []string{"a late release does not free a later term of the same owner"}},
	{"a release ignores the owner", func(m *mutant) {
		m.eachRelease(func(l lease.Lease) lease.Released {
			row, _ := m.row(l.Key)
			l.Owner = row.Owner
			return m.free(l)
		})
	}, []string{"a release by another owner frees nothing", "two owners of one process exclude each other"}},
	{"a release ignores the term", func(m *mutant) {
		m.eachRelease(func(l lease.Lease) lease.Released {
			row, _ := m.row(l.Key)
			return m.free(row.Lease)
		})
	}, []string{"a late release does not free the successor", "concurrent calls could have happened one after another"}},
	{"a release removes the row", func(m *mutant) {
		m.eachRelease(func(l lease.Lease) lease.Released {
			a := m.free(l)
			m.Store.Sweep(context.Background(), lease.SweepOptions{})
			return a
		})
	}, []string{"a released row keeps its token"}},
	{"a release of an expired lease is an error", func(m *mutant) {
		m.eachRelease(func(l lease.Lease) lease.Released {
			if row, _ := m.row(l.Key); row.Lease == l && !row.Held {
				return lease.Released{Err: lease.ErrLost}
			}
			return m.free(l)
		})
	}, []string{"an expired lease can be released"}},
}

// endsSoon tells the contexts that a property cuts short from its own.
func endsSoon(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < 100*time.Millisecond
}

var cancelFlaws = []flaw{
	{"contexts are ignored", func(m *mutant) {
		m.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			return m.fencing.Acquire(context.WithoutCancel(ctx), reqs)
		}
	}, []string{"a call whose context has ended returns an error at once and holds nothing"}},
	// go-sql-driver/mysql#731.
	{"an acquire that was cut short takes the key and denies it", func(m *mutant) {
		m.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := m.fencing.Acquire(context.WithoutCancel(ctx), reqs)
			if endsSoon(ctx) {
				<-ctx.Done()
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return answers, err
		}
	}, []string{
		"a call whose context has ended returns an error at once and holds nothing",
		"an acquire that is cut short holds nothing for ever",
	}},
	{"a release that was cut short is never done", func(m *mutant) {
		var done sync.Map
		m.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			if endsSoon(ctx) {
				done.Store(leases[0], true)
				return nil, lease.ErrUnknown
			}
			if _, again := done.Load(leases[0]); again {
				return []lease.Released{{Gone: true}}, nil
			}
			return m.fencing.Release(ctx, leases)
		}
	}, []string{"a release that is cut short can be repeated"}},
	{"an invalid key fails the call after the others were granted", func(m *mutant) {
		m.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := m.fencing.Acquire(ctx, reqs)
			for _, a := range answers {
				if a.Err != nil {
					return nil, a.Err
				}
			}
			return answers, err
		}
	}, []string{"an invalid key in a batch takes no valid one with it"}},
}
