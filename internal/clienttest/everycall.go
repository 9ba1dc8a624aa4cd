package clienttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlockdb/rowlock"
)

// EveryCall has callers make calls of every kind, with options of every kind, on clients whose
// network is bad. It fails the test where two callers hold a key that they do not share, or one has
// it within the MinHold of another, where a token does not grow, and where neither a lock nor an
// error is returned.
type EveryCall struct {
	testing.TB
	// Keys that are called for.
	Keys []string
	// Hold is for how long keys are held at most; calls are given 15 times as long at most.
	Hold time.Duration
	// Lease is the least TTL that is asked for.
	Lease time.Duration

	mu      sync.Mutex
	granted int
	held    []*holding
	last    map[string]rowlock.Token // the newest that was granted alone
	forced  map[grant]bool           // whose holders an operator does not wait for
}

// grant is what one lock, or a group of readers, has of a key.
type grant struct {
	key   string
	token rowlock.Token
}

// holding is a lock that a caller was told it has.
type holding struct {
	*rowlock.Lock
	shared, unsure bool      // unsure: whether it is shared, since a Downgrade
	kept           time.Time // until when its MinHold lasts at least
}

// over reports whether others may have the key.
func (h *holding) over() bool { return h.Context().Err() != nil && !time.Now().Before(h.kept) }

// Play has callers of the clients work so long. Then nothing is held any more.
func (p *EveryCall) Play(clients []*rowlock.Client, callers int, rng *rand.Rand, d time.Duration) {
	end := time.Now().Add(d)
	p.mu.Lock()
	p.last, p.forced = make(map[string]rowlock.Token), make(map[grant]bool)
	p.mu.Unlock()
	var all sync.WaitGroup
	for i := range callers {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 2))
		all.Go(func() {
			for time.Now().Before(end) {
				p.visit(clients[i%len(clients)], mine)
			}
		})
	}
	all.Wait()
}

// CloseSome closes half of the clients within the time. Its result waits for that, and returns why
// one has failed: then a key may be locked until its lease ends.
func CloseSome(clients []*rowlock.Client, rng *rand.Rand, within time.Duration) (wait func() error) {
	var all errgroup.Group
	for _, c := range clients {
		if after := UpTo(rng, 2*within); after < within {
			all.Go(func() error {
				time.Sleep(after)
				return c.Close()
			})
		}
	}
	return all.Wait
}

// Granted is how many locks callers were told they have.
func (p *EveryCall) Granted() int { return p.granted }

// visit is one call, and what is done with its locks.
func (p *EveryCall) visit(c *rowlock.Client, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.TB.Context(), UpTo(rng, []time.Duration{
		p.Hold / 80, p.Hold, 15 * p.Hold,
	}[rng.IntN(3)]))
	defer cancel()
	began := time.Now()
	opts, minHold := p.options(rng)
	locks, unlock, shared, err := p.call(ctx, c, rng, opts)
	switch {
	case errors.Is(err, rowlock.ErrConfig): // options that contradict each other
		return
	case (err == nil) != (unlock != nil):
		p.Errorf("locks %v and error %v", locks, err)
	case err != nil:
		time.Sleep(time.Millisecond + UpTo(rng, 100*time.Millisecond))
		return
	}
	var mine []*holding
	for _, l := range locks {
		mine = append(mine, p.believe(l, shared))
	}
	if !shared && rng.IntN(5) == 0 {
		p.downgrade(mine[0], rng)
	}
	time.Sleep(UpTo(rng, []time.Duration{1, p.Hold / 13, p.Hold}[rng.IntN(3)]))
	ctx, cancel = context.WithTimeout(p.TB.Context(), UpTo(rng, p.Hold*3/2))
	defer cancel()
	if len(locks) == 1 && rng.IntN(5) == 0 {
		unlock, minHold = locks[0].UnlockNow, 0
	}
	if unlock(ctx) == nil {
		p.keep(mine, began.Add(minHold))
	}
	for _, l := range locks {
		if l.Context().Err() == nil {
			p.Errorf("%q lives after its Unlock", l.Key())
		}
	}
}

// keep notes until when locks that were released leave their keys locked at least.
func (p *EveryCall) keep(locks []*holding, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range locks {
		h.kept = until
	}
	p.held = append(p.held, locks...)
}

// call makes a call of some kind. unlock is nil unless it was granted.
func (p *EveryCall) call(
	ctx context.Context, c *rowlock.Client, rng *rand.Rand, opts []rowlock.Option,
) (locks []*rowlock.Lock, unlock func(context.Context) error, shared bool, err error) {
	keys := make([]string, 1+rng.IntN(min(3, len(p.Keys))))
	for n, i := range rng.Perm(len(p.Keys))[:len(keys)] {
		keys[n] = p.Keys[i]
	}
	var one *rowlock.Lock
	var all *rowlock.Locks
	kind := rng.IntN(10)
	switch kind {
	case 0, 1:
		one, err = c.Lock(ctx, keys[0], opts...)
	case 2:
		one, err = c.TryLock(ctx, keys[0], opts...)
	case 3, 4:
		one, err = c.RLock(ctx, keys[0], opts...)
	case 5:
		one, err = c.LockAny(ctx, keys, opts...)
	case 6:
		one, err = c.TryLockAny(ctx, keys, opts...)
	case 7:
		all, err = c.LockAll(ctx, keys, opts...) //rowlockvet:ignore the caller gets its Unlock
	case 8:
		all, err = c.TryLockAll(ctx, keys, opts...) //rowlockvet:ignore the same
	case 9:
		all, err = c.RLockAll(ctx, keys, opts...) //rowlockvet:ignore the same
	}
	shared = slices.Contains([]int{3, 4, 9}, kind)
	switch {
	case one != nil:
		return []*rowlock.Lock{one}, one.Unlock, shared, err
	case all != nil:
		for _, key := range all.Keys() {
			locks = append(locks, all.Lock(key))
		}
		return locks, all.Unlock, shared, err
	}
	return nil, nil, shared, err
}

func (p *EveryCall) options(rng *rand.Rand) (opts []rowlock.Option, minHold time.Duration) {
	for _, o := range []rowlock.Option{
		rowlock.MaxHold(p.Hold/4 + UpTo(rng, 5*p.Hold)), rowlock.NoRenew(),
		rowlock.Priority(1 + rng.IntN(9)),
		rowlock.TTL(p.Lease + UpTo(rng, 5*p.Lease)),
		rowlock.MaxIdle(p.Hold/4 + UpTo(rng, 5*p.Hold/4)),
	} {
		if rng.IntN(6) == 0 {
			opts = append(opts, o)
		}
	}
	if rng.IntN(6) == 0 {
		minHold = 1 + UpTo(rng, 2*p.Hold)
		opts = append(opts, rowlock.MinHold(minHold))
	}
	return opts, minHold
}

// believe notes a grant, and who believes to hold its key at this moment.
func (p *EveryCall) believe(l *rowlock.Lock, shared bool) *holding {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted++
	p.held = slices.DeleteFunc(p.held, (*holding).over)
	for _, h := range p.held {
		both := h.Key() == l.Key() && l.Context().Err() == nil
		forced := p.forced[grant{h.Key(), h.Token()}] || p.forced[grant{l.Key(), l.Token()}]
		if both && !forced && !h.unsure && (!h.shared || !shared) {
			p.Errorf("%q: token %d is held (shared %t), and %d was granted (shared %t)",
				l.Key(), h.Token(), h.shared, l.Token(), shared)
		}
	}
	//rowlockvet:ignore it looks for a broken promise, and protects nothing
	if !shared && l.Token() <= p.last[l.Key()] {
		p.Errorf("%q: token %d after %d", l.Key(), l.Token(), p.last[l.Key()])
	}
	if !shared {
		p.last[l.Key()] = l.Token()
	}
	mine := &holding{Lock: l, shared: shared}
	p.held = append(p.held, mine)
	return mine
}

func (p *EveryCall) downgrade(h *holding, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.TB.Context(), UpTo(rng, p.Hold))
	defer cancel()
	p.mu.Lock()
	h.unsure = true
	p.mu.Unlock()
	if h.Downgrade(ctx) == nil {
		p.mu.Lock()
		h.shared, h.unsure = true, false
		p.mu.Unlock()
	}
}

// Force takes a key from one of those who hold it, as an operator does.
func (p *EveryCall) Force(ctx context.Context, c *rowlock.Client, rng *rand.Rand) error {
	p.mu.Lock()
	if len(p.held) == 0 {
		p.mu.Unlock()
		return nil
	}
	h := p.held[rng.IntN(len(p.held))]
	p.forced[grant{h.Key(), h.Token()}] = true
	p.mu.Unlock()
	_, err := c.ForceRelease(ctx, h.Key(), rowlock.Force{Token: h.Token(), By: "an operator", Reason: "a test"})
	return err
}

// UpTo is some time from 0 on, and less than d.
func UpTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d)))
}
