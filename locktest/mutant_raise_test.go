package locktest

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

func (m *mutant) Raise(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
	return m.raise(ctx, reqs)
}

func (m *mutant) eachRaise(answer func(q lease.RaiseRequest) lease.Raised) {
	m.raise = func(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
		return each(ctx, reqs, answer)
	}
}

// raised is the right answer to one request.
func (m *mutant) raised(q lease.RaiseRequest) lease.Raised {
	a, err := sole(m.fencing.Raise(context.Background(), []lease.RaiseRequest{q}))
	if err != nil {
		return lease.Raised{Err: err}
	}
	return a
}

// raisedAs raises what change makes of a request, if the request is valid.
func raisedAs(change func(m *mutant, q *lease.RaiseRequest, row lease.Record)) func(m *mutant) {
	return func(m *mutant) {
		m.eachRaise(func(q lease.RaiseRequest) lease.Raised {
			if row, ok := m.row(q.Key); ok && q.Check() == nil {
				change(m, &q, row)
			}
			return m.raised(q)
		})
	}
}

var raiseFlaws = []flaw{
	{"a raise only says that it raises", func(m *mutant) {
		m.eachRaise(func(lease.RaiseRequest) lease.Raised { return lease.Raised{} })
	}, []string{
		"a raised lease has the new token, and the next grant a higher one",
		"a token is not lowered, nor raised beyond the last",
	}},
	{"a raise is a new grant", func(m *mutant) {
		m.eachRaise(func(q lease.RaiseRequest) lease.Raised {
			a := m.raised(q)
			if !a.Gone && a.Err == nil {
				m.force(lease.AcquireRequest{Key: q.Key, Owner: q.Owner, TTL: 2 * ttl}, q.To)
			}
			return a
		})
	}, []string{"a raise leaves owner, note and expiry alone"}},
	// A lost reply.
	{"a repeated raise finds nothing to raise", func(m *mutant) {
		m.eachRaise(func(q lease.RaiseRequest) lease.Raised {
			if row, _ := m.row(q.Key); q.Check() == nil && row.Lease != q.Lease {
				return lease.Raised{Gone: true}
			}
			return m.raised(q)
		})
	}, []string{"a repeated raise answers as the first"}},
	{"a raise ignores the owner", raisedAs(func(_ *mutant, q *lease.RaiseRequest, row lease.Record) {
		q.Owner = row.Owner
	}), []string{
		"only the lease that the row names is raised",
		"several leases are raised in one batch, answered in order",
	}},
	{"a raise ignores the token", raisedAs(func(_ *mutant, q *lease.RaiseRequest, row lease.Record) {
		q.Token = row.Token
	}), []string{"only the lease that the row names is raised"}},
	{"a raise revives an expired lease", func(m *mutant) {
		m.eachRaise(func(q lease.RaiseRequest) lease.Raised {
			if row, _ := m.row(q.Key); q.Check() == nil && !row.Held && row.Lease == q.Lease {
				m.force(lease.AcquireRequest{Key: q.Key, Owner: q.Owner, TTL: ttl}, q.To)
				return lease.Raised{}
			}
			return m.raised(q)
		})
	}, []string{"an expired or released lease is not raised"}},
	{"a raise may lower a token", func(m *mutant) {
		m.eachRaise(func(q lease.RaiseRequest) lease.Raised {
			if row, _ := m.row(q.Key); row.Lease == q.Lease {
				m.SetToken(q.Key, q.To)
				return lease.Raised{}
			}
			return m.raised(q)
		})
	}, []string{"a token is not lowered, nor raised beyond the last"}},
	{"raises are answered in the order of the rows", func(m *mutant) {
		m.raise = func(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
			answers, err := m.fencing.Raise(ctx, reqs)
			if len(answers) > 1 {
				answers[0], answers[2] = answers[2], answers[0]
			}
			return answers, err
		}
	}, []string{"several leases are raised in one batch, answered in order"}},
}
