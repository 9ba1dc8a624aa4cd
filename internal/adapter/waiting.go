package adapter

import (
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// HasQueue reports whether the store keeps waiters in order. The methods of a queue below must not
// be called on a store without one.
func (s *Store) HasQueue() bool { return s.queue != nil }

// Claim asks for each key in the queue's order.
func (s *Store) Claim(ctx context.Context, reqs []lease.AcquireRequest) []lease.Acquired {
	answers, err := s.queue.Claim(ctx, reqs)
	return acquired("claim", answers, err, len(reqs))
}

// Pass gives each lease up to the head of its queue.
func (s *Store) Pass(ctx context.Context, leases []lease.Lease) []lease.Passed {
	answers, err := s.queue.Pass(ctx, leases)
	failed := func(err error) lease.Passed { return lease.Passed{Err: err} }
	return Each("pass", answers, err, len(leases), failed)
}

// QueuePositions reads the positions of tickets. An error is the call's: it says nothing of any
// ticket.
func (s *Store) QueuePositions(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
	places, err := s.queue.QueuePositions(ctx, waiters)
	return places, Count("places", len(places), len(waiters), err)
}

// Join adds tickets to their queues, or shows that they are alive.
func (s *Store) Join(ctx context.Context, tickets []lease.Ticket) error {
	return s.queue.Join(ctx, tickets)
}

// Leave removes tickets.
func (s *Store) Leave(ctx context.Context, waiters []lease.Lease) error {
	return s.queue.Leave(ctx, waiters)
}

// Registers reports whether the store keeps registrations of waiting processes. Register and
// Unregister must not be called on a store that keeps none.
func (s *Store) Registers() bool { return s.registry != nil }

// Meet tells the store of a process that is going to use it.
func (s *Store) Meet(process lease.Owner) {
	if m, ok := As[interface{ Meet(process lease.Owner) }](s.store); ok {
		m.Meet(process)
	}
}

// Register notes that a process waits for keys.
func (s *Store) Register(
	ctx context.Context, process lease.Owner, identity string, keys []string, d time.Duration,
) error {
	return s.registry.Register(ctx, process, identity, keys, d)
}

// Unregister takes that back.
func (s *Store) Unregister(ctx context.Context, process lease.Owner, keys []string) error {
	return s.registry.Unregister(ctx, process, keys)
}

// AnyAwaited reports whether any process but this one waits for one of keys. It is so unless the
// store knows better.
func (s *Store) AnyAwaited(ctx context.Context, process lease.Owner, keys []string) bool {
	if s.registry == nil {
		return true
	}
	awaited, err := s.registry.Awaited(ctx, process, keys)
	return Count("awaited", len(awaited), len(keys), err) != nil || slices.Contains(awaited, true)
}

// Waiting counts the processes that wait for each key. ok is false if the store does not count, or
// does not answer.
func (s *Store) Waiting(ctx context.Context, keys []string) (counts []int, ok bool) {
	if s.census == nil {
		return nil, false
	}
	counts, err := s.census.Waiting(ctx, keys)
	return counts, Count("waiting", len(counts), len(keys), err) == nil
}
