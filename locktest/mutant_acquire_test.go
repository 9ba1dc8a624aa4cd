package locktest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var acquireFlaws = []flaw{
	{"acquire does not look who holds the key", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired { return m.force(q, 0) })
	}, []string{"a key has one owner at a time", "concurrent calls could have happened one after another"}},
	{"acquire looks first and writes later", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Held {
				return m.ask(q)
			}
			time.Sleep(100 * time.Microsecond)
			return m.force(q, 0)
		})
	}, []string{
		"64 owners race for each of many new keys and one gets it",
		"64 owners race for one expired lease and one gets it",
		"64 owners race for a released key and one gets it",
		"racing retries of one owner get the same lease",
		"concurrent calls could have happened one after another",
		"tokens go on growing while a sweeper runs",
	}},
	{"a loser gets an error", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			a := m.ask(q)
			if a.Err == nil && !a.Granted {
				a.Err = &lease.HeldError{Key: q.Key}
			}
			return a
		})
	}, []string{"a loser is told who holds the key, for how long, and gets no error"}},
	{"a loser is not told of the holder", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			a := m.ask(q)
			a.Holder = lease.Holder{}
			return a
		})
	}, []string{"a loser is told who holds the key, for how long, and gets no error"}},
	{"notes are cut", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			q.Note = q.Note[:min(len(q.Note), lease.MaxStoredNote-1)]
			return m.ask(q)
		})
	}, []string{"a note of 384 bytes comes back as it was"}},
	// MySQL's ON DUPLICATE KEY UPDATE with the expiry assigned before the owner.
	{"a losing attempt extends the holder's lease", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			a := m.ask(q)
			if row, _ := m.row(q.Key); !a.Granted {
				m.extend(lease.RenewRequest{Lease: row.Lease, TTL: q.TTL})
			}
			return a
		})
	}, []string{"a losing attempt changes nothing"}},
	// ZOOKEEPER-1262.
	{"a repeated acquire is told that the key is held", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Held && row.Owner == q.Owner {
				return lease.Acquired{Holder: lease.Holder{Remaining: row.Remaining}}
			}
			return m.ask(q)
		})
	}, []string{
		"a repeated acquire returns the same lease",
		"a key asked for twice by one owner in a batch is one lease",
		"racing retries of one owner get the same lease",
		"concurrent calls could have happened one after another",
	}},
	{"a repeated acquire is a grant of its own", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Owner == q.Owner {
				return m.force(q, 0)
			}
			return m.ask(q)
		})
	}, []string{
		"a repeated acquire returns the same lease",
		"a key asked for twice by one owner in a batch is one lease",
		"racing retries of one owner get the same lease",
	}},
	{
		"owners are one for the whole process", otherOwners(func(lease.Owner) lease.Owner { return lease.Owner{1} }),
		[]string{"a key has one owner at a time", "two owners of one process exclude each other"},
	},
	{
		"owners are compared by half", otherOwners(func(o lease.Owner) lease.Owner { clear(o[8:]); return o }),
		[]string{"two owners of one process exclude each other"},
	},
	{"an expired lease is for ever", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Owner != q.Owner && !row.Owner.IsZero() {
				return lease.Acquired{}
			}
			return m.ask(q)
		})
	}, []string{"an expired lease is taken over with a higher token", "a lease ends by itself, and not before its time"}},
	{"a takeover keeps the token", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			row, _ := m.row(q.Key)
			if !row.Held && !row.Owner.IsZero() {
				return m.force(q, row.Token)
			}
			return m.ask(q)
		})
	}, []string{"an expired lease is taken over with a higher token", "64 owners race for one expired lease and one gets it"}},
	{"an owner gets his expired lease back", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Owner == q.Owner {
				return m.force(q, row.Token)
			}
			return m.ask(q)
		})
	}, []string{"an owner whose lease has expired gets a new one with a higher token"}},
	{"the zero owner is granted what is free", func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired {
			if q.Owner.IsZero() {
				return lease.Acquired{Granted: true, Token: 1}
			}
			return m.ask(q)
		})
	}, []string{"the zero owner is granted nothing"}},
}

var batchFlaws = []flaw{
	{"acquires are answered in the order of the keys", func(m *mutant) {
		m.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			reqs = slices.Clone(reqs)
			slices.SortFunc(reqs, func(a, b lease.AcquireRequest) int { return strings.Compare(a.Key, b.Key) })
			return m.fencing.Acquire(ctx, reqs)
		}
	}, []string{"a batch of acquires is answered in the order of the requests"}},
	{"renewals are answered in the order of the keys", func(m *mutant) {
		m.renew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			reqs = slices.Clone(reqs)
			slices.SortFunc(reqs, func(a, b lease.RenewRequest) int { return strings.Compare(a.Key, b.Key) })
			return m.fencing.Renew(ctx, reqs)
		}
	}, []string{"1200 leases are renewed in one batch, answered in order"}},
	{"renewals end after 1000", func(m *mutant) {
		m.renew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			return m.fencing.Renew(ctx, reqs[:min(len(reqs), 1000)])
		}
	}, []string{"1200 leases are renewed in one batch, answered in order"}},
	{"releases are answered in the order of the keys", func(m *mutant) {
		m.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			leases = slices.Clone(leases)
			slices.SortFunc(leases, func(a, b lease.Lease) int { return strings.Compare(a.Key, b.Key) })
			return m.fencing.Release(ctx, leases)
		}
	}, []string{"a batch of releases is answered in the order of the leases"}},
	{"a batch looks at all rows first and writes them later", func(m *mutant) {
		m.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			var free []bool
			for _, q := range reqs {
				row, _ := m.row(q.Key)
				free = append(free, !row.Held)
			}
			i := -1
			return each(ctx, reqs, func(q lease.AcquireRequest) lease.Acquired {
				if i++; free[i] {
					return m.force(q, 0)
				}
				return m.ask(q)
			})
		}
	}, []string{"of a key asked for by several owners in one batch one gets it"}},
	{"an empty batch is an error", func(m *mutant) {
		m.renew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if len(reqs) == 0 {
				return nil, lease.ErrUnsupported
			}
			return m.fencing.Renew(ctx, reqs)
		}
	}, []string{"an empty batch is answered with nothing"}},
}
