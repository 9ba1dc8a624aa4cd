package quorum

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/late"
	"github.com/rowlockdb/rowlock/lease"
)

// Release ends each lease at all members, and returns when a majority has answered alike. A member
// that does not answer is asked again until the lease has expired there. The error wraps
// lease.ErrUnknown if fewer than a majority answer.
func (s *Store) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	if err := s.ready(ctx, "release"); err != nil {
		return nil, err
	}
	leases = slices.Clone(leases) // a member may answer after the caller uses its slice again
	s.leave(leases)
	tallies := make([]tally, len(leases))
	run(ctx, s, round[lease.Released]{
		what: "release", bound: s.cfg.Timeout, items: s.all(len(leases)),
		keys: keysOf(leases, ofLease),
		send: func(ctx context.Context, m *member) ([]lease.Released, error) {
			return m.store.Release(ctx, leases)
		},
		failed: adapter.Unreleased,
		take: func(m *member, answers []lease.Released) bool {
			enough := true
			for i, a := range answers {
				tallies[i].released(a)
				enough = enough && (tallies[i].named >= s.need || tallies[i].gone >= s.need)
			}
			s.again(m, leases, answers)
			return enough
		},
		late: func(m *member, answers []lease.Released) { s.again(m, leases, answers) },
	})
	answers := make([]lease.Released, len(leases))
	for i, l := range leases {
		answers[i] = s.released(ctx, l, &tallies[i])
	}
	return answers, only(answers, func(a lease.Released) error { return a.Err })
}

func (t *tally) released(a lease.Released) {
	switch {
	case a.Err != nil:
		t.errs = append(t.errs, a.Err)
	case a.Gone:
		t.gone++
	default:
		t.named++
	}
}

// released is the answer for one lease. If members that did not answer may have had it, it is not
// said to be gone.
func (s *Store) released(ctx context.Context, l lease.Lease, t *tally) lease.Released {
	if err := lease.CheckStoredKey(l.Key); err != nil {
		return lease.Released{Err: err}
	}
	if t.named+t.gone >= s.need {
		return lease.Released{Gone: t.named == 0 || t.gone >= s.need}
	}
	if ctx.Err() != nil {
		t.errs = append(t.errs, ctx.Err())
	}
	return lease.Released{Err: late.Told(ctx, t.failure("release", l.Key, len(s.members)), nil)}
}

// again leaves to the cleaner what a member has not released.
func (s *Store) again(m *member, leases []lease.Lease, answers []lease.Released) {
	for i, a := range answers {
		if a.Err != nil && !leases[i].Owner.IsZero() && lease.CheckStoredKey(leases[i].Key) == nil {
			s.soil(m, leases[i])
		}
	}
}

// leave notes that leases end of which calls are still under way, so that what those are granted is
// released too, and has released what members may have of their owners.
func (s *Store) leave(leases []lease.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		b := s.late[attempt{l.Key, l.Owner}]
		if b != nil && (l.Token == 0 || l.Token == b.token) {
			b.gone = true
			for _, m := range s.members {
				if v := &b.votes[m.at]; v.uncertain && !v.flying {
					s.calls.Go(func() { s.tidy(m, []*bid{b}) })
				}
			}
		}
	}
}
