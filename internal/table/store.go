// Package table is the lease.Store over rows: it sends a dialect's statements down the lanes, tries again what certainly was
// not applied, resolves what is unknown by asking again with the same owner and confirming what is found, and turns the database's errors into ours.
package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Options are what a Store can be told.
type Options struct {
	// Lanes is how many connections to keep.
	Lanes int
	// Strategy is what an acquire tries first.
	Strategy sqlstore.Strategy
	// Timeout bounds one statement.
	Timeout time.Duration
	// Evicts has Open look whether this user may do what Evict does, and warn if not.
	Evicts bool
	// Limit bounds a call that asks for no lease and whose ctx has no deadline, give or take a second; 0 means 30 s. A call that asks
	// for leases is bounded by their TTL.
	Limit time.Duration
	// Hints lets Listen borrow one more connection of the pool, for as long as it listens.
	Hints bool
	// Watch is how often Listen looks whether the database has changed, where nothing tells it; 0 means 10 ms.
	Watch time.Duration
	// Optimistic says that the dialect locks no row that it only reads. The queue does, so it is not tried and must not be used; and
	// a user who may not raise floors or delete is let in. Such a user cannot sweep.
	Optimistic bool
}

// Store keeps leases as rows.
type Store struct {
	d        *sqlstore.Dialect
	strategy sqlstore.Strategy
	lanes    *lane.Set[call]
	instance string
	process  processes
	hints    hints
	limit    time.Duration
	single   bool // lane
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.TxReleaser = (*Store)(nil)
	_ lease.Sweeper    = (*Store)(nil)
	_ lease.Passer     = (*Store)(nil)
	_ lease.Interest   = (*Store)(nil)
	_ lease.Notifier   = (*Store)(nil)
	_ lease.Settler    = (*Store)(nil)
	_ lease.Waker      = (*Store)(nil)
	_ lease.Census     = (*Store)(nil)

	_ lease.RenewingFencer = (*Store)(nil)
)

// Acquire grants what is free or expired.
func (s *Store) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	var one [1]*op
	out, ops := make([]lease.Acquired, len(reqs)), slots(&one, len(reqs))
	for i, r := range reqs {
		if out[i].Err = r.Check(); out[i].Err == nil {
			ops[i] = newOp(lane.Acquire, task{acquire: r})
		}
	}
	s.beginAll(ops)
	for i, op := range ops {
		if op != nil {
			a, doubtful, err := s.conclude(ctx, "acquire", reqs[i].Key, op)
			out[i] = granted(a.acquired, doubtful, err)
		}
	}
	return out, only(out, func(a lease.Acquired) error { return a.Err })
}

// slots is room for n ops; for one, the room that is there.
func slots(one *[1]*op, n int) []*op {
	if n == 1 {
		return one[:]
	}
	return make([]*op, n)
}

// granted is the answer to a request; doubtful says that an earlier try of it had an unknown outcome.
func granted(a lease.Acquired, doubtful bool, err error) lease.Acquired {
	if err != nil && (!errors.Is(err, sqlstore.ErrRowLocked) || errors.Is(err, lease.ErrUnknown)) {
		return lease.Acquired{Err: err}
	}
	a.Doubtful = doubtful
	a.Locked = err != nil // not granted, by a holder of whom nothing more is known: perhaps a copy of this request
	return a
}

// Release clears owners.
func (s *Store) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	var one [1]*op
	out, ops := make([]lease.Released, len(leases)), slots(&one, len(leases))
	for i, l := range leases {
		if out[i].Gone = l.Owner.IsZero(); !out[i].Gone { // nobody: to a batch it would be whoever had the key last
			ops[i] = newOp(lane.Release, task{release: l})
		}
	}
	s.beginAll(ops)
	for i, op := range ops {
		if op == nil {
			continue
		}
		a, doubtful, err := s.conclude(ctx, "release", leases[i].Key, op)
		out[i] = a.released
		out[i].Gone = out[i].Gone && !doubtful // the try that was not heard of may have been what released it
		out[i].Err = err
	}
	return out, only(out, func(r lease.Released) error { return r.Err })
}

// Renew extends leases in one statement, on MySQL in three where some cannot be extended.
func (s *Store) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	op, _, err := s.do(ctx, lane.Renew, "renew", reqs[0].Key, task{renew: reqs})
	return op.renewed, err
}

// only returns the error of a batch of one as the call's own: that is where callers of a single operation look.
func only[T any](items []T, err func(T) error) error {
	if len(items) == 1 {
		return err(items[0])
	}
	return nil
}

// Settle returns when what is running has ended, or with ctx. An acquire whose caller has left can be granted until then.
func (s *Store) Settle(ctx context.Context) { s.lanes.Settle(ctx) }

// Close ends every Listen, runs what is pending to its end and closes the connections.
func (s *Store) Close() error {
	s.hints.close()
	s.lanes.Close()
	return nil
}

// explain turns a database's error into one of ours, with the verb and the key.
func (s *Store) explain(verb, key string, err error) error {
	switch {
	case errors.Is(err, lane.ErrClosed):
		return fmt.Errorf("%w: %s %q", lease.ErrClosed, verb, key)
	case errors.Is(err, lane.ErrWithdrawn):
		return fmt.Errorf("rowlock: %s %q: %w", verb, key, err)
	case errors.Is(err, lane.ErrOrphaned):
		return fmt.Errorf("%w: %s %q: %w", lease.ErrUnknown, verb, key, err)
	}
	v := sqlstore.Judge(s.d, err)
	switch {
	case v.As != nil:
		return fmt.Errorf("%w: %s %q: %w", v.As, verb, key, err)
	case v.Class == sqlstore.Unknown:
		return fmt.Errorf("%w: %s %q: %w", lease.ErrUnknown, verb, key, err)
	case v.Class == sqlstore.Conflict:
		return fmt.Errorf("%w: %s %q: %w", lease.ErrBusy, verb, key, err)
	}
	return fmt.Errorf("rowlock: %s %q: %w", verb, key, err)
}
