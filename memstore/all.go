package memstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.AllAcquirer = (*Store)(nil)

// AcquireAll grants every key or none. See [lease.AllAcquirer].
func (s *Store) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if err := cmp.Or(adapter.CheckAll(reqs), ctx.Err()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	answers, possible, err := s.tryAllLocked(now, reqs)
	for i := 0; possible && err == nil && i < len(reqs); i++ {
		answers[i] = s.acquireLocked(now, reqs[i])
	}
	return answers, err
}

// tryAllLocked returns what is in the way, and grants nothing.
func (s *Store) tryAllLocked(
	now time.Time, reqs []lease.AcquireRequest,
) (answers []lease.Acquired, possible bool, err error) {
	answers, possible = make([]lease.Acquired, len(reqs)), true
	for i, q := range reqs {
		r := s.rows[q.Key]
		held := r != nil && r.held(now)
		switch {
		case r != nil && r.placement != lease.PlacementTable:
			return nil, false, fmt.Errorf("acquire all %q: %w", q.Key, lease.ErrMoved)
		case held && r.owner != q.Owner:
			answers[i].Holder = r.holder(now)
			possible = false
		case !held && s.nextLocked(q.Key, r) >= lease.MaxToken:
			return nil, false, fmt.Errorf("acquire all %q: %w", q.Key, lease.ErrTokenExhausted)
		default:
			answers[i].Possible = true
		}
	}
	return answers, possible, nil
}
