package adapter

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// Claim asks for each key in the order of the Queue.
func (s *Store) Claim(ctx context.Context, reqs []lease.AcquireRequest) []lease.Acquired {
	answers, err := s.Queue.Claim(ctx, reqs)
	return acquired("claim", answers, err, len(reqs))
}

// Pass gives each lease up to the head of its queue.
func (s *Store) Pass(ctx context.Context, leases []lease.Lease) []lease.Passed {
	answers, err := s.Queue.Pass(ctx, leases)
	failed := func(err error) lease.Passed { return lease.Passed{Err: err} }
	return Each("pass", answers, err, len(leases), failed)
}

// QueuePositions reads the positions of tickets. An error is the call's: it says nothing of any
// ticket.
func (s *Store) QueuePositions(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
	places, err := s.Queue.QueuePositions(ctx, waiters)
	return places, Count("places", len(places), len(waiters), err)
}

// Meet tells the store of a process that is going to use it.
func (s *Store) Meet(process lease.Owner) {
	if m, ok := As[interface{ Meet(process lease.Owner) }](s.Store); ok {
		m.Meet(process)
	}
}

// AnyAwaited reports whether any process but this one waits for one of keys. It is so unless the
// store knows better.
func (s *Store) AnyAwaited(ctx context.Context, process lease.Owner, keys ...string) bool {
	if s.Registry == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	awaited, err := s.Registry.Awaited(ctx, process, keys)
	return Count("awaited", len(awaited), len(keys), err) != nil || slices.Contains(awaited, true)
}

// Waiting counts the processes that wait for each key. It returns nil if the store does not count,
// or does not answer.
func (s *Store) Waiting(ctx context.Context, keys []string) []int {
	if s.census == nil {
		return nil
	}
	counts, err := s.census.Waiting(ctx, keys)
	if Count("waiting", len(counts), len(keys), err) != nil {
		return nil
	}
	return counts
}
