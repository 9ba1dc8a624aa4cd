package locktest

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

// sharedFromRead answers a request of a member by reading, and so writes nothing.
func (m *mutant) sharedFromRead(again func(q lease.AcquireRequest, row lease.Record) lease.Acquired) {
	members := make(map[lease.AcquireRequest]bool)
	m.share = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		return each(ctx, reqs, func(q lease.AcquireRequest) lease.Acquired {
			at := lease.AcquireRequest{Key: q.Key, Owner: q.Owner}
			if row, _ := m.row(q.Key); row.Intent && members[at] {
				return again(q, row)
			}
			a, err := sole(m.fencing.Share(ctx, []lease.AcquireRequest{q}))
			if err != nil {
				return lease.Acquired{Err: err}
			}
			members[at] = a.Granted
			return a
		})
	}
}

var sharedBatchFlaws = []flaw{
	// A count of the rows that a statement has removed, which says how many, and not which.
	{"all of a batch have left if one has", func(m *mutant) {
		m.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			out, err := m.fencing.Release(ctx, leases)
			for i := range out {
				out[i].Gone = out[i].Gone && len(out) == 1
			}
			return out, err
		}
	}, []string{"a batch of leaves tells each its own"}},
	{"none of a batch has left if one was gone", func(m *mutant) {
		m.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			out, err := m.fencing.Release(ctx, leases)
			gone := false
			for i := range out {
				gone = gone || out[i].Gone
			}
			for i := range out {
				out[i].Gone = gone
			}
			return out, err
		}
	}, []string{"a batch of leaves tells each its own"}},
	{"all of a batch have joined if one has", func(m *mutant) {
		m.share = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			out, err := m.fencing.Share(ctx, reqs)
			for i := range out {
				if out[0].Granted && !out[i].Granted {
					out[i] = out[0]
				}
			}
			return out, err
		}
	}, []string{
		"a batch of requests to share tells each its own",
		"a repeated request to share passes an intent, and extends the member",
	}},
	{"a member that asks again behind an intent is answered from a read", func(m *mutant) {
		m.sharedFromRead(func(_ lease.AcquireRequest, row lease.Record) lease.Acquired {
			return lease.Acquired{Granted: true, Token: row.Token}
		})
	}, []string{"a repeated request to share passes an intent, and extends the member"}},
	{"an intent refuses members that ask again", func(m *mutant) {
		m.sharedFromRead(func(lease.AcquireRequest, lease.Record) lease.Acquired {
			return lease.Acquired{Holder: lease.Holder{Shared: true}}
		})
	}, []string{"a repeated request to share passes an intent, and extends the member"}},
}
