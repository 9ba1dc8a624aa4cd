package quorum

import (
	"context"
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Sweep removes dead rows at all members side by side, and returns how many they have removed,
// divided by the number of members; the next sweep counts the rest. A member that fails does not
// stop the others; its error is returned. A member that is no lease.Sweeper keeps its rows.
func (s *Store) Sweep(ctx context.Context, opts lease.SweepOptions) (removed int64, err error) {
	if err := s.ready(ctx, "sweep"); err != nil {
		return 0, err
	}
	counts, errs := make([]int64, len(s.members)), make([]error, len(s.members))
	var all sync.WaitGroup
	for i, m := range s.members {
		if m.sweeper == nil {
			errs[i] = m.named(fmt.Errorf("%w: sweep", lease.ErrUnsupported))
			continue
		}
		all.Go(func() {
			_ = m.calls.look(nil).wait(ctx)
			n, err := m.sweeper.Sweep(ctx, opts)
			if counts[i] = n; err != nil {
				errs[i] = m.named(err)
			}
		})
	}
	all.Wait()
	removed = s.sweptOf(counts)
	if err := oneline.Join(errs...); err != nil {
		return removed, fmt.Errorf("rowlock: quorum: sweep: %w", err)
	}
	return removed, nil
}

// sweptOf counts a row as one that every member had.
func (s *Store) sweptOf(counts []int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range counts {
		s.swept += n
	}
	n := int64(len(s.members))
	removed := s.swept / n
	s.swept %= n
	return removed
}
