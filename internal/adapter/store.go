package adapter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Timeout bounds a call to the store that no caller's context bounds.
const Timeout = 2 * time.Second

// Outlives is how long after its caller has left a request may still be carried out. An etcd server
// takes 7 s. A pinned connection's own timeouts bound it to 6 s there.
const Outlives = 7 * time.Second

// Store is a lease.Store with its abilities. An ability that the store lacks is nil; the methods
// say what that means for a caller.
type Store struct {
	lease.Store

	Notifier lease.Notifier
	Waker    lease.Waker // nil too if waking one process has no effect
	Sweeper  lease.Sweeper
	Graph    lease.Graph
	TxPasser TxPasser
	// What is theirs below must not be called if they are nil.
	Passer     lease.Passer
	SlotPasser lease.SlotPasser
	Evictor    lease.Evictor
	lease.Queue
	lease.Registry

	all      lease.AllAcquirer
	any      lease.AnyAcquirer
	census   lease.Census
	fencer   lease.Fencer
	renewing lease.RenewingFencer
	releaser lease.TxReleaser
	roamer   lease.Roamer
	settler  lease.Settler
	sharer   lease.Sharer
	limiter  lease.Limiter
	forcer   lease.ForceReleaser
	tracer   lease.Tracer
	meter    Meter
}

// Of resolves what the store can do, by itself or by a store beneath it.
func Of(store lease.Store) *Store {
	s := &Store{Store: store}
	s.Notifier, _ = As[lease.Notifier](store)
	s.Waker, _ = As[lease.Waker](store)
	s.Sweeper, _ = As[lease.Sweeper](store)
	s.Graph, _ = As[lease.Graph](store)
	s.all, _ = As[lease.AllAcquirer](store)
	s.any, _ = As[lease.AnyAcquirer](store)
	s.Passer, _ = As[lease.Passer](store)
	s.Queue, _ = As[lease.Queue](store)
	s.Registry, _ = As[lease.Registry](store)
	s.census, _ = s.Registry.(lease.Census)
	s.fencer, _ = As[lease.Fencer](store)
	s.renewing, _ = s.fencer.(lease.RenewingFencer)
	s.releaser, _ = As[lease.TxReleaser](store)
	s.TxPasser, _ = s.releaser.(TxPasser)
	s.Evictor, _ = As[lease.Evictor](store)
	s.roamer, _ = As[lease.Roamer](store)
	s.settler, _ = As[lease.Settler](store)
	s.sharer, _ = As[lease.Sharer](store)
	s.limiter, _ = As[lease.Limiter](store)
	s.SlotPasser, _ = s.limiter.(lease.SlotPasser)
	s.forcer, _ = As[lease.ForceReleaser](store)
	s.tracer, _ = As[lease.Tracer](store)
	s.meter, _ = As[Meter](store)
	if s.Waker != nil && !s.Waker.Wakes() {
		s.Waker = nil
	}
	return s
}

// Tables is TablesOf the store.
func (s *Store) Tables() any { return TablesOf(s.Store) }

// TablesOf returns a value that is equal for stores on the same tables: what the store says itself,
// or else the innermost store.
func TablesOf(store lease.Store) any {
	if says, ok := As[interface{ Tables() any }](store); ok {
		return says.Tables()
	}
	for {
		w, wraps := store.(lease.Wrapper)
		if !wraps {
			if !reflect.TypeOf(store).Comparable() {
				return new(byte) // equal to nothing else
			}
			return store
		}
		store = w.Unwrap()
	}
}

// Acquire asks for each key.
func (s *Store) Acquire(ctx context.Context, reqs []lease.AcquireRequest) []lease.Acquired {
	answers, err := s.Store.Acquire(ctx, reqs)
	return acquired("acquire", answers, err, len(reqs))
}

// AcquireAll asks for all keys or none. A store that cannot do that, or not with these keys, is
// asked for each: the caller then releases a part that was granted.
func (s *Store) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) []lease.Acquired {
	if s.all != nil && len(reqs) > 1 {
		answers, err := s.all.AcquireAll(ctx, reqs)
		if !errors.Is(err, lease.ErrUnsupported) {
			return acquired("acquire all", answers, err, len(reqs))
		}
	}
	answers, err := s.Store.Acquire(ctx, reqs)
	return acquired("acquire", answers, err, len(reqs))
}

// HandOver is the Passer's: it hands each lease over.
func (s *Store) HandOver(ctx context.Context, items []lease.HandOver) []lease.Acquired {
	answers, err := s.Passer.HandOver(ctx, items)
	return acquired("hand over", answers, err, len(items))
}

// Renew extends each lease.
func (s *Store) Renew(ctx context.Context, reqs []lease.RenewRequest) []lease.Renewed {
	return Renew(ctx, s.Store, reqs)
}

// Renewer is the part of a lease.Store that Renew needs.
type Renewer interface {
	Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error)
}

// Renew extends each lease in the store.
func Renew(ctx context.Context, store Renewer, reqs []lease.RenewRequest) []lease.Renewed {
	answers, err := store.Renew(ctx, reqs)
	return Each("renew", answers, err, len(reqs), Unrenewed)
}

// Release releases each lease.
func (s *Store) Release(ctx context.Context, leases []lease.Lease) []lease.Released {
	answers, err := s.Store.Release(ctx, leases)
	return Each("release", answers, err, len(leases), Unreleased)
}

// Reaches reports whether a key of this placement can be locked through the store.
func (s *Store) Reaches(placement int) bool {
	here := placement == lease.PlacementTable || placement == lease.PlacementTransaction
	return here || s.roamer != nil && s.roamer.Reaches(placement)
}

// Settle returns when no call made before it can grant anything more, or when ctx ends. It reports
// false if the store cannot tell.
func (s *Store) Settle(ctx context.Context) bool {
	if s.settler == nil {
		return false
	}
	s.settler.Settle(ctx)
	return true
}

// ErrUnseen is why a server that could say what has a row locked does not: told to those who wait.
var ErrUnseen = errors.New("nothing says what has the row locked")

// Evict is the Evictor's: it ends the sessions that keep an expired key locked. A key or a store
// where that cannot be done has none.
func (s *Store) Evict(
	ctx context.Context, key string, least time.Duration,
) ([]lease.Evicted, error) {
	found, err := s.Evictor.Evict(ctx, key, least)
	if errors.Is(err, lease.ErrUnsupported) && !errors.Is(err, ErrUnseen) {
		err = nil // the key has moved, or the store has a single pinned connection
	}
	return found, err
}

// Fence checks a lease in the caller's transaction, and extends it there if renew says so and the
// store can.
func (s *Store) Fence(
	ctx context.Context, tx lease.Runner, r lease.RenewRequest, renew bool,
) error {
	switch {
	case s.fencer == nil:
		return fmt.Errorf("%w: Fence of %q: the lock is not in your database; "+
			"compare Token with one stored beside the data", lease.ErrUnsupported, r.Key)
	case renew && s.renewing != nil:
		return s.renewing.FenceRenew(ctx, tx, r)
	}
	return s.fencer.Fence(ctx, tx, r.Lease)
}

// ReleaseTx releases a lease in the caller's transaction.
func (s *Store) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if s.releaser == nil {
		return fmt.Errorf("%w: UnlockTx of %q: the lock is not in your database; Unlock after the commit",
			lease.ErrUnsupported, l.Key)
	}
	return s.releaser.ReleaseTx(ctx, tx, l)
}
