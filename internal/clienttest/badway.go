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

// BadWay is a store in memory behind a network that mostly works, for every ability that changes
// rows. A request is late or lost on its way or on the way back, or a copy of it arrives later.
type BadWay struct {
	*memstore.Store
	mu   sync.Mutex
	rng  *rand.Rand
	calm bool
}

// longest is how late a request may arrive, or a copy of it.
const longest = 3 * time.Second

// NewBadWay returns one way to a store.
func NewBadWay(s *memstore.Store, seed uint64) *BadWay {
	return &BadWay{Store: s, rng: rand.New(rand.NewPCG(seed, 1))}
}

// fate is what becomes of a request, and how long after it a copy arrives, unless that is 0: an
// earlier try, which had no answer.
func (b *BadWay) fate() (f lossy.Fate, copied time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calm {
		return f, 0
	}
	if b.rng.IntN(20) == 0 {
		copied = UpTo(b.rng, longest)
	}
	return lossy.Mostly(b.rng, longest), copied
}

// CalmDown has the network work. What is under way stays as bad as it is.
func (b *BadWay) CalmDown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calm = true
}

// Settle returns when no earlier request can arrive any more, or with ctx. See [lease.Settler].
func (b *BadWay) Settle(ctx context.Context) {
	select {
	case <-time.After(longest):
	case <-ctx.Done():
	}
}

// carried carries a call. It is given up some day, as by every store.
func carried[Q, A any](
	ctx context.Context, b *BadWay, call func(context.Context, []Q) (A, error), items []Q,
) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*longest)
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

// Acquire is carried. See [memstore.Store].
func (b *BadWay) Acquire(ctx context.Context, q asks) (acquired, error) {
	return carried(ctx, b, b.Store.Acquire, q)
}

// AcquireAll is carried. See [memstore.Store].
func (b *BadWay) AcquireAll(ctx context.Context, q asks) (acquired, error) {
	return carried(ctx, b, b.Store.AcquireAll, q)
}

// Claim is carried. See [memstore.Store].
func (b *BadWay) Claim(ctx context.Context, q asks) (acquired, error) {
	return carried(ctx, b, b.Store.Claim, q)
}

// Share is carried. See [memstore.Store].
func (b *BadWay) Share(ctx context.Context, q asks) (acquired, error) {
	return carried(ctx, b, b.Store.Share, q)
}

// AcquireAny is carried. See [memstore.Store].
func (b *BadWay) AcquireAny(ctx context.Context, q asks, n int) (acquired, error) {
	any := func(ctx context.Context, q asks) (acquired, error) { return b.Store.AcquireAny(ctx, q, n) }
	return carried(ctx, b, any, q)
}

// Renew is carried. See [memstore.Store].
func (b *BadWay) Renew(ctx context.Context, q []lease.RenewRequest) ([]lease.Renewed, error) {
	return carried(ctx, b, b.Store.Renew, q)
}

// Downgrade is carried. See [memstore.Store].
func (b *BadWay) Downgrade(ctx context.Context, q []lease.RenewRequest) ([]lease.Renewed, error) {
	return carried(ctx, b, b.Store.Downgrade, q)
}

// Release is carried. See [memstore.Store].
func (b *BadWay) Release(ctx context.Context, q []lease.Lease) ([]lease.Released, error) {
	return carried(ctx, b, b.Store.Release, q)
}

// Pass is carried. See [memstore.Store].
func (b *BadWay) Pass(ctx context.Context, q []lease.Lease) ([]lease.Passed, error) {
	return carried(ctx, b, b.Store.Pass, q)
}

// HandOver is carried. See [memstore.Store].
func (b *BadWay) HandOver(ctx context.Context, q []lease.HandOver) (acquired, error) {
	return carried(ctx, b, b.Store.HandOver, q)
}

// Join is carried. See [memstore.Store].
func (b *BadWay) Join(ctx context.Context, q []lease.Ticket) (bool, error) {
	return carried(ctx, b, b.Store.Join, q)
}

// Leave is carried. See [memstore.Store].
func (b *BadWay) Leave(ctx context.Context, q []lease.Lease) error {
	leave := func(ctx context.Context, q []lease.Lease) (int, error) { return 0, b.Store.Leave(ctx, q) }
	_, err := carried(ctx, b, leave, q)
	return err
}

// Intend is carried. See [memstore.Store].
func (b *BadWay) Intend(ctx context.Context, by lease.Owner, keys []string, d time.Duration) error {
	intend := func(ctx context.Context, q []string) (int, error) { return 0, b.Store.Intend(ctx, by, q, d) }
	_, err := carried(ctx, b, intend, keys)
	return err
}

// Raise is carried. See [memstore.Store].
func (b *BadWay) Raise(ctx context.Context, q []lease.RaiseRequest) ([]lease.Raised, error) {
	return carried(ctx, b, b.Store.Raise, q)
}

// AcquireWithin is carried. See [memstore.Store].
func (b *BadWay) AcquireWithin(ctx context.Context, l lease.Limit, q asks, n int) (acquired, error) {
	within := func(ctx context.Context, q asks) (acquired, error) { return b.Store.AcquireWithin(ctx, l, q, n) }
	return carried(ctx, b, within, q)
}

// PassSlots is carried. See [memstore.Store].
func (b *BadWay) PassSlots(ctx context.Context, name string, q []lease.SlotHandOver) (acquired, error) {
	pass := func(ctx context.Context, q []lease.SlotHandOver) (acquired, error) {
		return b.Store.PassSlots(ctx, name, q)
	}
	return carried(ctx, b, pass, q)
}

// MakeLimit is carried. See [memstore.Store].
func (b *BadWay) MakeLimit(ctx context.Context, l lease.Limit) (lease.Limit, error) {
	limits := func(ctx context.Context, q []lease.Limit) (lease.Limit, error) {
		return b.Store.MakeLimit(ctx, q[0])
	}
	return carried(ctx, b, limits, []lease.Limit{l})
}

// Resize is carried. See [memstore.Store].
func (b *BadWay) Resize(ctx context.Context, l lease.Limit) error {
	resize := func(ctx context.Context, q []lease.Limit) (int, error) { return 0, b.Store.Resize(ctx, q[0]) }
	_, err := carried(ctx, b, resize, []lease.Limit{l})
	return err
}

// ForceRelease is carried. See [memstore.Store].
func (b *BadWay) ForceRelease(ctx context.Context, r lease.ForceRequest) (lease.Forced, error) {
	force := func(ctx context.Context, q []lease.ForceRequest) (lease.Forced, error) {
		return b.Store.ForceRelease(ctx, q[0])
	}
	return carried(ctx, b, force, []lease.ForceRequest{r})
}
