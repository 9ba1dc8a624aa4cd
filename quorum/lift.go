package quorum

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// lift brings the members of each majority to one token: the largest that any of them has granted.
// A later majority shares a member with this one, whose next token is above it.
func (s *Store) lift(ctx context.Context, bids []*bid, bound time.Duration) {
	lower, items := s.lower(bids)
	if len(lower) == 0 {
		return
	}
	run(ctx, s, round[lease.Raised]{
		what: "raise", bound: bound, items: items,
		keys: func(m *member) []string { return keysOf(lower[m.at], raise.key)(m) },
		send: func(ctx context.Context, m *member) ([]lease.Raised, error) {
			return m.raiser.Raise(ctx, raises(lower[m.at]))
		},
		failed: func(err error) lease.Raised { return lease.Raised{Err: err} },
		take: func(m *member, answers []lease.Raised) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			for i, r := range lower[m.at] {
				r.heard(m, answers[i])
			}
			return all(bids, func(b *bid) bool { return s.lifted(b) })
		},
		late: func(m *member, answers []lease.Raised) {
			s.mu.Lock()
			bids := make([]*bid, len(answers))
			for i, r := range lower[m.at] {
				r.heard(m, answers[i])
				bids[i] = r.bid
			}
			s.mu.Unlock()
			s.tidy(m, bids)
		},
	})
}

// raise is a bid at one member, on its way from one token to another.
type raise struct {
	bid      *bid
	from, to lease.Token
}

func (r raise) key() string { return r.bid.Key }

func (r raise) heard(m *member, a lease.Raised) {
	v := &r.bid.votes[m.at]
	r.bid.flying--
	v.flying = false
	switch {
	case a.Err != nil: // it has the one token or the other
		v.kind, v.err, v.uncertain = failed, a.Err, true
	case a.Gone: // it has expired
		v.kind, v.holder = no, lease.Holder{}
	default:
		v.token = r.to
	}
}

func raises(of []raise) []lease.RaiseRequest {
	reqs := make([]lease.RaiseRequest, len(of))
	for i, r := range of {
		reqs[i] = lease.RaiseRequest{Lease: r.bid.lease(r.from), To: r.to}
	}
	return reqs
}

// lower chooses the bids' tokens, and returns for each member what must be raised to them. It is
// empty if every majority agrees already, as it nearly always does.
func (s *Store) lower(bids []*bid) (lower [][]raise, items []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bids {
		if !s.choose(b) || b.at(b.token) >= s.need {
			continue
		}
		if lower == nil {
			lower, items = make([][]raise, len(s.members)), s.all(0)
		}
		for i := range b.votes {
			if v := &b.votes[i]; v.kind == yes && v.token < b.token {
				lower[i] = append(lower[i], raise{b, v.token, b.token})
				items[i]++
				v.flying = true
				b.flying++
			}
		}
	}
	return lower, items
}

// choose sets the bid's token; see bid.choose. It skips one of which a release may come yet, of an
// earlier vote of the same owner: that would end the lease.
func (s *Store) choose(b *bid) bool {
	if !b.choose(s.need, s.ahead.of(b.Key, b.Owner)) {
		return false
	}
	for i := 0; i < len(s.members); i++ {
		if v := &b.votes[i]; v.kind == yes && v.token == b.token && s.members[i].dirt.has(b.lease(v.token)) {
			b.token, i = b.token+1, -1
		}
	}
	return true
}

// lifted reports whether a majority has the bid's token, or no raise under way can make one.
func (s *Store) lifted(b *bid) bool {
	rising := b.count(func(v *vote) bool { return v.flying && v.kind == yes && v.token < b.token })
	have := b.at(b.token)
	return have >= s.need || have+rising < s.need
}

// tidy does what follows for votes that are of no use, or not yet, to bids that have their answer:
// a smaller token is raised, a larger one released, and what is unknown is released by owner. It
// runs on a goroutine of its own. Bids that are still open are left alone.
func (s *Store) tidy(m *member, bids []*bid) {
	var release []lease.Lease
	var rise []raise
	s.mu.Lock()
	for _, b := range bids {
		l, r := s.tidied(m, b)
		release, rise = append(release, l...), append(rise, r...)
		s.forget(b)
	}
	s.mu.Unlock()
	s.releaseAt(context.Background(), m, release, s.cfg.Timeout)
	s.raiseAt(m, rise)
}

// tidied returns what is to be done at a member for a bid that is over.
func (s *Store) tidied(m *member, b *bid) (release []lease.Lease, rise []raise) {
	v := &b.votes[m.at]
	if b.state == open || b.state == passed || v.flying {
		return nil, nil
	}
	keep := b.state == granted && !b.gone
	switch {
	case v.kind == yes && keep && v.token == b.token:
		return nil, nil // its doubt, if any, is told with the answer
	case v.kind == yes && keep && v.token < b.token:
		v.flying = true
		b.flying++
		return nil, []raise{{b, v.token, b.token}}
	case v.kind == yes:
		release = append(release, b.lease(v.token))
		if keep {
			s.ahead.note(b.lease(v.token))
		}
	}
	v.kind = no
	// Never while the lease is held: a renewal may count this member by then, and a release by owner
	// would end what a majority stands on. See leave.
	if v.uncertain && !keep {
		release = append(release, b.lease(0))
		v.uncertain = false
	}
	s.soil(m, release...) // before another bid of its owner can be sent
	return release, nil
}

// mayHave reports whether a member may have something of the owner of a lease that is held.
func (b *bid) mayHave() bool {
	return b.state == granted && !b.gone && b.count(func(v *vote) bool { return v.uncertain }) > 0
}

// raiseAt lets a member that lags behind take part in leases that a majority has granted. It makes
// up for the next failure of another, and is no condition of any grant.
func (s *Store) raiseAt(m *member, rise []raise) {
	if len(rise) == 0 {
		return
	}
	hear := func(_ *member, answers []lease.Raised) bool {
		s.mu.Lock()
		bids := make([]*bid, len(rise))
		for i, r := range rise {
			r.heard(m, answers[i])
			bids[i] = r.bid
		}
		s.mu.Unlock()
		s.tidy(m, bids)
		return true
	}
	run(context.Background(), s, round[lease.Raised]{
		what: "raise", bound: s.cfg.Timeout, items: s.only(m, len(rise)),
		keys: keysOf(rise, raise.key),
		send: func(ctx context.Context, m *member) ([]lease.Raised, error) {
			return m.raiser.Raise(ctx, raises(rise))
		},
		failed: func(err error) lease.Raised { return lease.Raised{Err: err} },
		take:   hear, late: func(m *member, answers []lease.Raised) { hear(m, answers) },
	})
}
