package seam

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Shares returns an error that wraps lease.ErrUnsupported if the store's keys cannot be shared.
func (s *Store) Shares() error {
	if s.sharer == nil {
		return fmt.Errorf("%w: RLock needs a store whose keys can be shared (lease.Sharer)",
			lease.ErrUnsupported)
	}
	return nil
}

// Share makes each requester a member of the team that holds its key. Without the ability, Shares
// is an error and Share must not be called; nor must the others here.
func (s *Store) Share(ctx context.Context, reqs []lease.AcquireRequest) []lease.Acquired {
	answers, err := s.sharer.Share(ctx, reqs)
	return acquired("share", answers, err, len(reqs))
}

// Downgrade makes each lease a team of one.
func (s *Store) Downgrade(ctx context.Context, reqs []lease.RenewRequest) []lease.Renewed {
	answers, err := s.sharer.Downgrade(ctx, reqs)
	failed := func(err error) lease.Renewed { return lease.Renewed{Err: err} }
	return Each("downgrade", answers, err, len(reqs), failed)
}

// Wish notes that a caller waits for keys exclusively. Timeout bounds it.
func (s *Store) Wish(
	ctx context.Context, waiter lease.Owner, keys []string, d time.Duration,
) error {
	if s.sharer == nil {
		return nil // another kind of client shares the key
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return s.sharer.Wish(ctx, waiter, keys, d)
}
