package paxosbridge_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/lossy"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// weather is what happens to calls to a store: they are late, lost before or after they are
// executed, executed long after the caller has got ErrUnknown, or executed twice.
type weather struct {
	mu    sync.Mutex
	rand  *rand.Rand
	fair  atomic.Bool // from then on no call is harmed
	bad   int         // of a hundred calls
	calls atomic.Int64
}

func (w *weather) dice(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

func (w *weather) pause(most time.Duration) { time.Sleep(time.Duration(w.dice(int(most)))) }

// under makes one call.
func under[A any](w *weather, f func() (A, error)) (none A, err error) {
	w.calls.Add(1)
	if w.fair.Load() {
		return f()
	}
	w.pause(20 * time.Millisecond)
	if w.dice(100) >= w.bad {
		defer w.pause(20 * time.Millisecond)
		return f()
	}
	switch w.dice(4) {
	case 0: // it is never executed
	case 1:
		_, _ = f()
	case 2:
		w.later(func() { _, _ = f() })
	case 3:
		w.later(func() { _, _ = f() })
		return lossy.Repeated(f())
	}
	w.pause(time.Second)
	return none, lease.ErrUnknown
}

// longest is the latest that a late call arrives.
const longest = 3 * time.Second

func (w *weather) later(f func()) {
	go func() {
		w.pause(longest)
		f()
	}()
}

// settle returns when no earlier call can arrive any more, or with ctx.
func settle(ctx context.Context) {
	select {
	case <-time.After(longest):
	case <-ctx.Done():
	}
}

type moveAnswer struct {
	epoch int64
	ok    bool
}

// stormyTable and stormyCluster are the memory stores in bad weather.
type stormyTable struct {
	table
	w *weather
}

func (s stormyTable) Settle(ctx context.Context) { settle(ctx) }

func (s stormyTable) Acquire(
	_ context.Context, r []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	return under(
		s.w, func() ([]lease.Acquired, error) { return s.table.Acquire(context.Background(), r) },
	)
}

func (s stormyTable) Renew(_ context.Context, r []lease.RenewRequest) ([]lease.Renewed, error) {
	return under(
		s.w, func() ([]lease.Renewed, error) { return s.table.Renew(context.Background(), r) },
	)
}

func (s stormyTable) Release(_ context.Context, r []lease.Lease) ([]lease.Released, error) {
	return under(
		s.w, func() ([]lease.Released, error) { return s.table.Release(context.Background(), r) },
	)
}

func (s stormyTable) HandOver(_ context.Context, r []lease.HandOver) ([]lease.Acquired, error) {
	return under(
		s.w, func() ([]lease.Acquired, error) { return s.table.HandOver(context.Background(), r) },
	)
}

func (s stormyTable) Inspect(_ context.Context, f lease.Filter) ([]lease.Record, error) {
	return under(
		s.w, func() ([]lease.Record, error) { return s.table.Inspect(context.Background(), f) },
	)
}

func (s stormyTable) Depart(_ context.Context, l lease.Lease, placement int) (int64, bool, error) {
	a, err := under(s.w, func() (moveAnswer, error) {
		epoch, ok, err := s.table.Depart(context.Background(), l, placement)
		return moveAnswer{epoch, ok}, err
	})
	return a.epoch, a.ok, err
}

func (s stormyTable) Return(_ context.Context, key string, placement int, epoch int64) (bool, error) {
	return under(
		s.w, func() (bool, error) { return s.table.Return(context.Background(), key, placement, epoch) },
	)
}

func (s stormyTable) Recall(_ context.Context, key string, placement int, epoch int64) (bool, error) {
	return under(
		s.w, func() (bool, error) { return s.table.Recall(context.Background(), key, placement, epoch) },
	)
}

type stormyCluster struct {
	*memcluster.Cluster
	w *weather
}

func (s stormyCluster) Settle(ctx context.Context) { settle(ctx) }

func (s stormyCluster) Acquire(
	_ context.Context, r []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	return under(
		s.w, func() ([]lease.Acquired, error) { return s.Cluster.Acquire(context.Background(), r) },
	)
}

func (s stormyCluster) Renew(_ context.Context, r []lease.RenewRequest) ([]lease.Renewed, error) {
	return under(
		s.w, func() ([]lease.Renewed, error) { return s.Cluster.Renew(context.Background(), r) },
	)
}

func (s stormyCluster) Release(_ context.Context, r []lease.Lease) ([]lease.Released, error) {
	return under(
		s.w, func() ([]lease.Released, error) { return s.Cluster.Release(context.Background(), r) },
	)
}

func (s stormyCluster) HandOver(_ context.Context, r []lease.HandOver) ([]lease.Acquired, error) {
	return under(
		s.w,
		func() ([]lease.Acquired, error) { return s.Cluster.HandOver(context.Background(), r) },
	)
}

func (s stormyCluster) Inspect(_ context.Context, f lease.Filter) ([]lease.Record, error) {
	return under(
		s.w, func() ([]lease.Record, error) { return s.Cluster.Inspect(context.Background(), f) },
	)
}

func (s stormyCluster) Open(_ context.Context, key string, epoch int64) error {
	_, err := under(
		s.w, func() (bool, error) { return true, s.Cluster.Open(context.Background(), key, epoch) },
	)
	return err
}

func (s stormyCluster) Supersede(_ context.Context, key string, epoch int64) error {
	_, err := under(
		s.w,
		func() (bool, error) { return true, s.Cluster.Supersede(context.Background(), key, epoch) },
	)
	return err
}

func (s stormyCluster) Seal(_ context.Context, l lease.Lease) (bool, error) {
	return under(s.w, func() (bool, error) { return s.Cluster.Seal(context.Background(), l) })
}

func (s stormyCluster) Records(
	_ context.Context, after string, limit int,
) ([]paxosbridge.Record, error) {
	return under(s.w, func() ([]paxosbridge.Record, error) {
		return s.Cluster.Records(context.Background(), after, limit)
	})
}

func (s stormyCluster) Probe(context.Context) error {
	_, err := under(
		s.w, func() (bool, error) { return true, s.Cluster.Probe(context.Background()) },
	)
	return err
}
