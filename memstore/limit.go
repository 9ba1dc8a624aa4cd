package memstore

import (
	"cmp"
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.SlotPasser = (*Store)(nil)

// MakeLimit makes a limit unless there is one. See [lease.Limiter].
func (s *Store) MakeLimit(ctx context.Context, l lease.Limit) (lease.Limit, error) {
	if err := cmp.Or(l.Check(), ctx.Err()); err != nil {
		return l, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limits[l.Name].slots == 0 {
		s.limits[l.Name] = limit{l.Slots, 1}
	}
	l.Slots = s.limits[l.Name].slots
	return l, nil
}

// Resize changes a limit. See [lease.Limiter].
func (s *Store) Resize(ctx context.Context, l lease.Limit) error {
	if err := cmp.Or(l.Check(), ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.limits[l.Name]
	if now.slots == 0 {
		return &lease.LimitError{Name: l.Name, Slots: l.Slots}
	}
	s.limits[l.Name] = limit{l.Slots, now.generation + 1}
	return nil
}

// AcquireWithin grants n slots within a limit, or none. See [lease.Limiter].
func (s *Store) AcquireWithin(
	ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int,
) ([]lease.Acquired, error) {
	if err := cmp.Or(l.CheckSlots(reqs, n), adapter.CheckAny(reqs, n), ctx.Err()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if answers := s.againLocked(now, reqs); answers != nil {
		return whole(answers, n)
	}
	found := s.limits[l.Name]
	if found.slots != l.Slots {
		return nil, &lease.LimitError{Name: l.Name, Slots: l.Slots, Found: found.slots}
	}
	answers := s.withinLocked(now, l, reqs, n)
	for i := range answers {
		if answers[i].Granted {
			answers[i].Generation = found.generation
		}
	}
	return answers, nil
}

// PassSlots hands slots over. See [lease.SlotPasser].
func (s *Store) PassSlots(
	ctx context.Context, name string, items []lease.SlotHandOver,
) ([]lease.Acquired, error) {
	return each(ctx, s, items, func(now time.Time, h lease.SlotHandOver) lease.Acquired {
		if err := h.Check(); err != nil {
			return lease.Acquired{Err: err}
		}
		if r := s.rows[h.From.Key]; r != nil && r.names(h.From) &&
			s.limits[name].generation != h.Generation {
			return lease.Acquired{}
		}
		a := s.handOverLocked(now, h.HandOver)
		if a.Granted {
			a.Generation = h.Generation
		}
		return a
	})
}

func (s *Store) withinLocked(
	now time.Time, l lease.Limit, reqs []lease.AcquireRequest, n int,
) []lease.Acquired {
	held := make([]bool, lease.MaxSlots)
	for i := range held {
		r := s.rows[l.Slot(i)]
		held[i] = r != nil && r.held(now)
	}
	bound := l.Bound(held)
	answers := make([]lease.Acquired, len(reqs))
	var at []int
	var some []lease.AcquireRequest
	for i, q := range reqs {
		if slot, _ := l.Index(q.Key); slot < bound {
			at, some = append(at, i), append(some, q)
		} else if r := s.rows[q.Key]; r != nil && r.held(now) {
			answers[i].Holder = r.holder(now)
		}
	}
	for i, a := range s.someLocked(now, some, n) {
		answers[at[i]] = a
	}
	return answers
}
