package seam

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Limits returns what grants slots within limits, or an error that wraps lease.ErrUnsupported.
func (s *Store) Limits() (lease.Limiter, error) {
	if s.limiter == nil {
		return nil, fmt.Errorf("%w: a semaphore needs a store that keeps limits (lease.Limiter)",
			lease.ErrUnsupported)
	}
	return s.limiter, nil
}

// AcquireWithin asks for n slots within a limit.
func (s *Store) AcquireWithin(
	ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int,
) []lease.Acquired {
	limits, err := s.Limits()
	if err != nil {
		return acquired("acquire slots", nil, err, len(reqs))
	}
	answers, err := limits.AcquireWithin(ctx, l, reqs, n)
	return acquired("acquire slots", answers, err, len(reqs))
}

// PassesSlots reports whether slots can be handed over. PassSlots must not be called otherwise.
func (s *Store) PassesSlots() bool { return s.slots != nil }

// PassSlots hands slots of one limit over.
func (s *Store) PassSlots(
	ctx context.Context, name string, items []lease.SlotHandOver,
) []lease.Acquired {
	answers, err := s.slots.PassSlots(ctx, name, items)
	return acquired("hand over slots", answers, err, len(items))
}
