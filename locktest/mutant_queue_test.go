package locktest

import (
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func (m *mutant) Join(ctx context.Context, tickets []lease.Ticket) (bool, error) {
	return m.join(ctx, tickets)
}

func (m *mutant) Leave(ctx context.Context, waiters []lease.Lease) error {
	return m.leave(ctx, waiters)
}

func (m *mutant) QueuePositions(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
	return m.places(ctx, waiters)
}

func (m *mutant) Claim(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return m.claim(ctx, reqs)
}

func (m *mutant) Pass(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
	return m.pass(ctx, leases)
}

// eachJoin replaces a ticket by another, or by none.
func (m *mutant) eachJoin(change func(t lease.Ticket) []lease.Ticket) {
	m.join = func(ctx context.Context, tickets []lease.Ticket) (bool, error) {
		var changed []lease.Ticket
		for _, t := range tickets {
			changed = append(changed, change(t)...)
		}
		return m.fencing.Join(ctx, changed)
	}
}

func (m *mutant) eachPass(answer func(l lease.Lease) lease.Passed) {
	m.pass = func(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
		return each(ctx, leases, answer)
	}
}

// hand is the right answer to one Pass.
func (m *mutant) hand(l lease.Lease) lease.Passed {
	p, err := sole(m.fencing.Pass(context.Background(), []lease.Lease{l}))
	if err != nil {
		return lease.Passed{Err: err}
	}
	return p
}

// rejoin brings a ticket back once it was used.
func (m *mutant) rejoin(key string, waiter lease.Owner) {
	t := lease.Ticket{AcquireRequest: request(key, waiter), Priority: 5}
	row, _ := m.row(key)
	m.Expire(key) // or else it would not be let in
	_, _ = m.fencing.Join(context.Background(), []lease.Ticket{t})
	if row.Held {
		m.force(request(key, row.Owner), row.Token)
	}
}

var queueFlaws = []flaw{
	{"a pass is a release", func(m *mutant) {
		m.eachPass(func(l lease.Lease) lease.Passed { return lease.Passed{Gone: m.free(l).Gone} })
	}, []string{
		"a lease is passed to the first ticket", "token 0 passes whatever the owner was given",
		"the queue of one key is nothing to another", "nobody is passed what is his own",
	}},
	{"the waiter that joins last is served first", func(m *mutant) {
		age := time.Duration(0)
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			_, _ = m.fencing.Join(context.Background(), []lease.Ticket{t})
			age += time.Hour
			m.AgeTicket(t.Key, t.Owner, age)
			return nil
		})
	}, []string{
		"a lease is passed to the first ticket", "tickets of one priority are served in the order they joined",
		"tickets that join in one batch are served in its order", "a higher priority goes first",
	}},
	{"a batch joins in the order of its owners", func(m *mutant) {
		m.join = func(ctx context.Context, tickets []lease.Ticket) (bool, error) {
			sorted := slices.Clone(tickets)
			slices.Reverse(sorted)
			return m.fencing.Join(ctx, sorted)
		}
	}, []string{"tickets that join in one batch are served in its order"}},
	{"all priorities are one", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			if t.CheckPriority() == nil {
				t.Priority = 5
			}
			return []lease.Ticket{t}
		})
	}, []string{"a higher priority goes first", "a priority is worth a head start and no more"}},
	{"a higher priority goes first for ever", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			_, _ = m.fencing.Join(context.Background(), []lease.Ticket{t})
			m.AgeTicket(t.Key, t.Owner, time.Duration(t.Priority)*time.Hour)
			return nil
		})
	}, []string{"a priority is worth a head start and no more"}},
	{"joining again is joining at the end", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			_ = m.fencing.Leave(context.Background(), waiters([]lease.Ticket{t}))
			return []lease.Ticket{t}
		})
	}, []string{"joining again keeps the place"}},
	{"tickets never die", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			m.undying = append(m.undying, t)
			return []lease.Ticket{t}
		})
		m.eachPass(func(l lease.Lease) lease.Passed {
			for _, t := range m.undying {
				_, _ = m.fencing.Join(context.Background(), []lease.Ticket{t})
			}
			return m.hand(l)
		})
		m.claim = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			_, _ = m.fencing.Join(ctx, m.undying)
			return m.fencing.Claim(ctx, reqs)
		}
		m.places = func(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
			_, _ = m.fencing.Join(ctx, m.undying)
			return m.fencing.QueuePositions(ctx, waiters)
		}
	}, []string{
		"a dead ticket is passed over", "the tickets of the dead hold up no claim", "a place without a live ticket is missing",
		"places write nothing", "a ticket is used up when the key is passed to it", "a ticket is used up by a claim",
	}},
	{"the dead keep their place", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			_, _ = m.fencing.Join(context.Background(), []lease.Ticket{t})
			if !slices.ContainsFunc(m.undying, func(u lease.Ticket) bool { return u.Owner == t.Owner }) {
				m.undying = append(m.undying, t)
			}
			for i, u := range m.undying {
				if u.Owner == t.Owner {
					m.AgeTicket(t.Key, t.Owner, time.Hour-time.Duration(i)*time.Minute)
				}
			}
			return nil
		})
	}, []string{"a dead ticket that joins again goes to the end"}},
	{"nobody leaves", func(m *mutant) {
		m.leave = func(context.Context, []lease.Lease) error { return nil }
	}, []string{"a waiter that has left is passed over, and may leave again", "a place without a live ticket is missing"}},
	{"all tickets are welcome", func(m *mutant) {
		m.join = func(ctx context.Context, tickets []lease.Ticket) (bool, error) {
			_, _ = m.fencing.Join(ctx, tickets)
			return false, nil
		}
	}, []string{"a ticket of nobody, of no key or of no priority is refused"}},
	{"a heartbeat brings the ticket back", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			if row, _ := m.row(t.Key); row.Held && row.Owner == t.Owner {
				m.rejoin(t.Key, t.Owner)
				m.undying = append(m.undying, t)
			}
			return []lease.Ticket{t}
		})
		m.eachPass(func(l lease.Lease) lease.Passed {
			p := m.hand(l)
			if i := slices.IndexFunc(m.undying, func(t lease.Ticket) bool { return t.Owner == l.Owner }); i >= 0 && p.To.IsZero() {
				to := m.force(m.undying[i].AcquireRequest, 0)
				p.To, p.Token = m.undying[i].Owner, to.Token
			}
			return p
		})
	}, []string{"a heartbeat after the grant brings no ticket back"}},
	{"a passed lease has the old owner's TTL and no note", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			t.TTL, t.Note = ttl, ""
			return []lease.Ticket{t}
		})
	}, []string{
		"a passed lease has the ticket's owner, note and full TTL, and a higher token",
		"a place whose key was passed to it says so, with the token and what remains",
	}},
	{"a pass keeps the token", func(m *mutant) {
		m.eachPass(func(l lease.Lease) lease.Passed {
			row, _ := m.row(l.Key)
			p := m.hand(l)
			if !p.To.IsZero() {
				m.SetToken(l.Key, row.Token)
				p.Token = row.Token
			}
			return p
		})
	}, []string{
		"a passed lease has the ticket's owner, note and full TTL, and a higher token",
		"waiters who join and pass at once are granted once each, one at a time, with rising tokens",
	}},
	{"a pass to nobody holds the key", func(m *mutant) {
		m.eachPass(func(l lease.Lease) lease.Passed {
			p := m.hand(l)
			if p == (lease.Passed{}) {
				m.ask(request(l.Key, lease.NewOwner()))
			}
			return p
		})
	}, []string{"a pass with nobody waiting frees the key"}},
	{"a pass ignores the token", func(m *mutant) {
		m.eachPass(func(l lease.Lease) lease.Passed { l.Token = 0; return m.hand(l) })
	}, []string{"a pass of what is gone says so and changes nothing"}},
	{"a pass ignores the term", func(m *mutant) {
		m.eachPass(func(l lease.Lease) lease.Passed {
			row, _ := m.row(l.Key)
			return m.hand(row.Lease)
		})
	}, []string{"a pass of what is gone says so and changes nothing"}},
	{"token 0 passes nothing", func(m *mutant) {
		m.eachPass(func(l lease.Lease) lease.Passed {
			if l.Token == 0 {
				return lease.Passed{Gone: true}
			}
			return m.hand(l)
		})
	}, []string{"token 0 passes whatever the owner was given"}},
	{"a pass lets tokens wrap", func(m *mutant) {
		m.eachPass(func(l lease.Lease) lease.Passed {
			if l.Token >= lease.MaxToken-1 {
				m.SetToken(l.Key, 1)
				l.Token = 1
			}
			return m.hand(l)
		})
	}, []string{"a key whose tokens have run out is freed and not passed"}},
}
