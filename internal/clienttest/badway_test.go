package clienttest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/lossy"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// badWay is a store in memory behind a network that mostly works, for every ability that changes
// rows.
type badWay struct {
	*memstore.Store
	mu   sync.Mutex
	rng  *rand.Rand
	calm bool
}

// fate is what becomes of a request, and how long after it a copy arrives, unless that is 0: an
// earlier try, which had no answer.
func (b *badWay) fate() (f lossy.Fate, copied time.Duration) {
	const longest = 3 * time.Second
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calm {
		return f, 0
	}
	if b.rng.IntN(20) == 0 {
		copied = upTo(b.rng, longest)
	}
	return lossy.Mostly(b.rng, longest), copied
}

func (b *badWay) calmDown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calm = true
}

// carried carries a call. It is given up some day, as by every store.
func carried[Q, A any](
	ctx context.Context, b *badWay, call func(context.Context, []Q) (A, error), items []Q,
) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	items = slices.Clone(items)
	fate, copied := b.fate()
	if copied > 0 {
		time.AfterFunc(copied, func() { _, _ = call(context.Background(), items) })
	}
	answers, err := lossy.Carry(ctx, fate, func(ctx context.Context) (A, error) { return call(ctx, items) })
	if copied == 0 {
		return answers, err
	}
	if unknown, ok := any(&answers).(*bool); ok {
		*unknown = true
	}
	return lossy.Repeated(answers, err)
}

type (
	asks     = []lease.AcquireRequest
	acquired = []lease.Acquired
)

func (b *badWay) Acquire(ctx context.Context, q asks) (acquired, error) {
	return carried(ctx, b, b.Store.Acquire, q)
}

func (b *badWay) AcquireAll(ctx context.Context, q asks) (acquired, error) {
	return carried(ctx, b, b.Store.AcquireAll, q)
}

func (b *badWay) Claim(ctx context.Context, q asks) (acquired, error) {
	return carried(ctx, b, b.Store.Claim, q)
}

func (b *badWay) Share(ctx context.Context, q asks) (acquired, error) {
	return carried(ctx, b, b.Store.Share, q)
}

func (b *badWay) AcquireAny(ctx context.Context, q asks, n int) (acquired, error) {
	any := func(ctx context.Context, q asks) (acquired, error) { return b.Store.AcquireAny(ctx, q, n) }
	return carried(ctx, b, any, q)
}

func (b *badWay) Renew(ctx context.Context, q []lease.RenewRequest) ([]lease.Renewed, error) {
	return carried(ctx, b, b.Store.Renew, q)
}

func (b *badWay) Downgrade(ctx context.Context, q []lease.RenewRequest) ([]lease.Renewed, error) {
	return carried(ctx, b, b.Store.Downgrade, q)
}

func (b *badWay) Release(ctx context.Context, q []lease.Lease) ([]lease.Released, error) {
	return carried(ctx, b, b.Store.Release, q)
}

func (b *badWay) Pass(ctx context.Context, q []lease.Lease) ([]lease.Passed, error) {
	return carried(ctx, b, b.Store.Pass, q)
}

func (b *badWay) HandOver(ctx context.Context, q []lease.HandOver) (acquired, error) {
	return carried(ctx, b, b.Store.HandOver, q)
}

func (b *badWay) Join(ctx context.Context, q []lease.Ticket) (bool, error) {
	return carried(ctx, b, b.Store.Join, q)
}

func (b *badWay) Leave(ctx context.Context, q []lease.Lease) error {
	leave := func(ctx context.Context, q []lease.Lease) (int, error) { return 0, b.Store.Leave(ctx, q) }
	_, err := carried(ctx, b, leave, q)
	return err
}

func (b *badWay) Intend(ctx context.Context, by lease.Owner, keys []string, d time.Duration) error {
	intend := func(ctx context.Context, q []string) (int, error) { return 0, b.Store.Intend(ctx, by, q, d) }
	_, err := carried(ctx, b, intend, keys)
	return err
}

func (b *badWay) Raise(ctx context.Context, q []lease.RaiseRequest) ([]lease.Raised, error) {
	return carried(ctx, b, b.Store.Raise, q)
}
