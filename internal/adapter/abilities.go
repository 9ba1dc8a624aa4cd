package adapter

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// need returns an ability, or an error if the store lacks it.
func need[A comparable](ability A, what string) (A, error) {
	if ability == *new(A) {
		return ability, fmt.Errorf("%w: %s", lease.ErrUnsupported, what)
	}
	return ability, nil
}

// Limits returns what grants slots within limits, or an error that wraps lease.ErrUnsupported.
func (s *Store) Limits() (lease.Limiter, error) {
	return need(s.limiter, "a semaphore needs a store that keeps limits (lease.Limiter)")
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

// PassSlots is the SlotPasser's: it hands slots of one limit over.
func (s *Store) PassSlots(
	ctx context.Context, name string, items []lease.SlotHandOver,
) []lease.Acquired {
	answers, err := s.SlotPasser.PassSlots(ctx, name, items)
	return acquired("hand over slots", answers, err, len(items))
}

// Forces returns what takes leases away, or an error that wraps lease.ErrUnsupported.
func (s *Store) Forces() (lease.ForceReleaser, error) {
	return need(s.forcer, "ForceRelease needs a store that keeps a record of it (lease.ForceReleaser)")
}

// Traces returns what keeps the trace, or an error that wraps lease.ErrUnsupported.
func (s *Store) Traces() (lease.Tracer, error) {
	return need(s.tracer, "a trace needs a store that keeps one (lease.Tracer)")
}

// Keeps returns the error of a tracer over another store that has no trace, or over tables that
// have none, and so can keep no event whatever happens. It writes no event, and asks no database.
func Keeps(t lease.Tracer) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := t.WriteTrace(ctx, nil)
	if oneline.Is(err, lease.ErrUnsupported, lease.ErrNoSchema, lease.ErrSchemaVersion) {
		return err
	}
	return nil
}

// Moves is a store that tells where keys have moved to.
type Moves interface {
	// TellMoves has told called after each move of this process, until stop is called. told must
	// return soon.
	TellMoves(told func(key string, placement int, why string)) (stop func())
}

// TellMoves is Moves of the store, if that is one.
func (s *Store) TellMoves(told func(key string, placement int, why string)) (stop func()) {
	if m, ok := As[Moves](s.Store); ok {
		return m.TellMoves(told)
	}
	return func() {}
}

// Measures are what a store that keeps connections of its own knows of them.
type Measures struct {
	// Connections is how many connections are open, and Busy how many of them run something now.
	Connections, Busy int64
	// Batches is how often a pinned connection has taken what was pending, and Requests how much it
	// took in all. Statements is how many statements were sent for them, without BEGIN, COMMIT and
	// ROLLBACK.
	Batches, Requests, Statements int64
	// Listening says that the connection on which other processes notify this one is open.
	Listening bool
}

// Meter is a store that measures itself.
type Meter interface{ Measure() Measures }

// Measure returns what the store knows of its connections. ok is false if it does not know.
func (s *Store) Measure() (m Measures, ok bool) {
	if s.meter == nil {
		return m, false
	}
	return s.meter.Measure(), true
}

// Shares returns an error that wraps lease.ErrUnsupported if the store's keys cannot be shared.
func (s *Store) Shares() error {
	if s.sharer == nil {
		return fmt.Errorf("%w: RLock needs a store whose keys can be shared (lease.Sharer)",
			lease.ErrUnsupported)
	}
	return nil
}

// Share makes each requester a member of the reader group that holds its key. Without the ability,
// Shares is an error and Share must not be called; nor must the others here.
func (s *Store) Share(ctx context.Context, reqs []lease.AcquireRequest) []lease.Acquired {
	answers, err := s.sharer.Share(ctx, reqs)
	return acquired("share", answers, err, len(reqs))
}

// Downgrade makes each lease a reader group of one.
func (s *Store) Downgrade(ctx context.Context, reqs []lease.RenewRequest) []lease.Renewed {
	answers, err := s.sharer.Downgrade(ctx, reqs)
	return Each("downgrade", answers, err, len(reqs), Unrenewed)
}

// Intend notes that a caller waits for keys exclusively. Timeout bounds it.
func (s *Store) Intend(
	ctx context.Context, waiter lease.Owner, keys []string, d time.Duration,
) error {
	if s.sharer == nil {
		return nil // another kind of client shares the key
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return s.sharer.Intend(ctx, waiter, keys, d)
}
