package locktest

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func (m *mutant) eachClaim(answer func(q lease.AcquireRequest) lease.Acquired) {
	m.claim = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		return each(ctx, reqs, answer)
	}
}

// demand is the right answer to one Claim.
func (m *mutant) demand(q lease.AcquireRequest) lease.Acquired {
	a, err := sole(m.fencing.Claim(context.Background(), []lease.AcquireRequest{q}))
	if err != nil {
		return lease.Acquired{Err: err}
	}
	return a
}

var claimFlaws = []flaw{
	{"a claim is an acquire", func(m *mutant) {
		m.eachClaim(func(q lease.AcquireRequest) lease.Acquired { return m.ask(q) })
	}, []string{
		"a claim is refused while another is ahead and writes nothing", "a claim without a ticket is granted only if nobody waits",
		"a ticket is used up by a claim",
	}},
	{"a claim does not look who holds the key", func(m *mutant) {
		m.eachClaim(func(q lease.AcquireRequest) lease.Acquired { return m.force(q, 0) })
	}, []string{
		"a claim of a held key is told who holds it and writes nothing", "of many who claim a free key at once one is granted",
		"a repeated claim is the same lease",
	}},
	{
		"a claim takes what a transaction has locked", func(m *mutant) { m.claim = m.Store.Claim },
		[]string{"a claim does not wait for a late holder's fence"},
	},
	{"a claim that is refused writes", func(m *mutant) {
		m.eachClaim(func(q lease.AcquireRequest) lease.Acquired {
			a := m.demand(q)
			if row, _ := m.row(q.Key); !a.Granted && row.Token > 0 {
				m.SetToken(q.Key, row.Token+1)
			}
			return a
		})
	}, []string{
		"a claim of a held key is told who holds it and writes nothing",
		"a claim is refused while another is ahead and writes nothing",
	}},
	{"a claim leaves the ticket", func(m *mutant) {
		m.eachClaim(func(q lease.AcquireRequest) lease.Acquired {
			p, _ := sole(m.fencing.QueuePositions(context.Background(), []lease.Lease{{Key: q.Key, Owner: q.Owner}}))
			a := m.demand(q)
			if a.Granted && !p.Missing && !p.Granted {
				m.rejoin(q.Key, q.Owner)
			}
			return a
		})
	}, []string{"a ticket is used up by a claim"}},
	{"an expired key is not claimed", func(m *mutant) {
		m.eachClaim(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); !row.Owner.IsZero() && row.Owner != q.Owner {
				return lease.Acquired{}
			}
			return m.demand(q)
		})
	}, []string{"the first in the queue is granted a free, an expired or a new key"}},
	{"a repeated claim is refused", func(m *mutant) {
		m.eachClaim(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Held && row.Owner == q.Owner {
				return lease.Acquired{Holder: lease.Holder{Remaining: row.Remaining}}
			}
			return m.demand(q)
		})
	}, []string{"a repeated claim is the same lease"}},
	{"a claim looks first and writes later", func(m *mutant) {
		m.eachClaim(func(q lease.AcquireRequest) lease.Acquired {
			if row, _ := m.row(q.Key); row.Held {
				return m.demand(q)
			}
			time.Sleep(100 * time.Microsecond)
			return m.force(q, 0)
		})
	}, []string{"of many who claim a free key at once one is granted"}},
	{"the zero owner claims what is free", func(m *mutant) {
		m.eachClaim(func(q lease.AcquireRequest) lease.Acquired {
			if q.Owner.IsZero() {
				return lease.Acquired{Granted: true, Token: 1}
			}
			return m.demand(q)
		})
	}, []string{"a claim by nobody is granted nothing"}},
}

// eachPlace changes what is answered to one waiter.
func eachPlace(change func(p *lease.QueuePosition)) func(m *mutant) {
	return func(m *mutant) {
		m.places = func(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
			places, err := m.fencing.QueuePositions(ctx, waiters)
			for i := range places {
				change(&places[i])
			}
			return places, err
		}
	}
}

var placeFlaws = []flaw{
	{"all are first", eachPlace(func(p *lease.QueuePosition) { p.Ahead = 0 }), []string{
		"a place says who is ahead, who holds and for how long",
		"places are answered in the order of the request, whatever the keys",
	}},
	{"a place does not know the holder", eachPlace(func(p *lease.QueuePosition) { p.Note = "" }), []string{
		"a place says who is ahead, who holds and for how long",
	}},
	{"a place is not told of a grant", eachPlace(func(p *lease.QueuePosition) { p.Granted, p.Token = false, 0 }), []string{
		"a place whose key was passed to it says so, with the token and what remains",
		"waiters who join and pass at once are granted once each, one at a time, with rising tokens",
	}},
	{"nobody is missing", eachPlace(func(p *lease.QueuePosition) { p.Missing = false }), []string{
		"a place without a live ticket is missing",
	}},
	{"places are answered backwards", func(m *mutant) {
		m.places = func(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
			places, err := m.fencing.QueuePositions(ctx, waiters)
			for i, j := 0, len(places)-1; i < j; i, j = i+1, j-1 {
				places[i], places[j] = places[j], places[i]
			}
			return places, err
		}
	}, []string{
		"places are answered in the order of the request, whatever the keys",
		"a place says who is ahead, who holds and for how long",
	}},
}
