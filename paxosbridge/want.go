package paxosbridge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// want is a mover that waits for a key.
type want struct {
	req  lease.AcquireRequest
	got  chan lease.Lease // holds one
	left bool             // given up: what comes later is for nobody
}

// wants are the keys that are about to move. Where this process holds such a key the mover gets it from the holder's hand: on a hot key
// whoever only asks now and then may never find it free.
type wants struct {
	mu sync.Mutex
	m  map[string]*want
	n  atomic.Int64
}

func (w *wants) any() bool { return w.n.Load() > 0 }

// fits reports that a lease is of the store, and in the cluster of the epoch, that the mover waits at. Another process may have moved the
// key meanwhile: a lease of the other store would be of no use to the mover, who would give it back to the wrong one.
func (w *want) fits(l lease.Lease) bool {
	if w.req.Epoch == 0 {
		return !isAway(l.Token)
	}
	return lease.Epoch(l.Token) == w.req.Epoch
}

// of returns who wants a lease that is given up.
func (w *wants) of(l lease.Lease) *want {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.m[l.Key]; one != nil && one.fits(l) {
		return one
	}
	return nil
}

var errMoving = errors.New("paxosbridge: the key is being moved already")

func (w *wants) add(one *want) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m[one.req.Key] != nil {
		return fmt.Errorf("%w: %q", errMoving, one.req.Key)
	}
	w.m[one.req.Key] = one
	w.n.Add(1)
	return nil
}

func (w *wants) remove(one *want, left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.m, one.req.Key)
	one.left = left
	w.n.Add(-1)
}

// give gives a mover what was handed over to him, and reports whether he is there still.
func (w *wants) give(to *want, l lease.Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case to.got <- l:
	default: // it has it already
	}
	return !to.left
}

// giveToMover hands a lease to the mover instead of releasing it. gone says that there was nothing to give up.
func (b *Bridge) giveToMover(ctx context.Context, at side, l lease.Lease) (gone bool, err error) {
	w := b.wants.of(l)
	if w == nil || l.Token == 0 {
		return justRelease(ctx, at, l)
	}
	answers, err := at.HandOver(ctx, []lease.HandOver{{From: l, To: w.req}})
	switch {
	case err != nil:
		return false, err
	case len(answers) != 1:
		return false, fmt.Errorf("%w: %w: %d answers to one request", lease.ErrUnknown, lease.ErrCorrupt, len(answers))
	case answers[0].Err != nil:
		return false, answers[0].Err
	case !answers[0].Granted:
		return justRelease(ctx, at, l) // gone, or the tokens of this epoch have run out
	}
	if given := (lease.Lease{Key: l.Key, Owner: w.req.Owner, Token: answers[0].Token}); !b.wants.give(w, given) {
		b.giveBack(at, given)
	}
	return false, nil
}

func justRelease(ctx context.Context, at side, l lease.Lease) (gone bool, err error) {
	r := one(at.Release(ctx, []lease.Lease{l}))
	return r.Gone, r.Err
}

// take waits until the mover has the key at store, or ctx ends. Then what it may have been given is given back.
func (b *Bridge) take(ctx context.Context, store lease.Store, key string, epoch int64) (lease.Lease, error) {
	w := &want{
		req: lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: twice(b.cfg.MoveTimeout), Note: "rowlock bridge: about to move", Epoch: epoch},
		got: make(chan lease.Lease, 1),
	}
	if err := b.wants.add(w); err != nil {
		return lease.Lease{}, err
	}
	l, err := b.wait(ctx, store, w)
	b.wants.remove(w, err != nil)
	if err != nil {
		b.giveBack(store, lease.Lease{Key: key, Owner: w.req.Owner})
	}
	return l, err
}

// twice is the longest duration where there is none that is twice as long.
func twice(d time.Duration) time.Duration { return d + min(d, math.MaxInt64-d) }

func (b *Bridge) wait(ctx context.Context, store lease.Store, w *want) (lease.Lease, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		answers, err := store.Acquire(ctx, []lease.AcquireRequest{w.req})
		if err == nil && len(answers) == 1 {
			err = answers[0].Err
		}
		if err != nil {
			return lease.Lease{}, err
		}
		if len(answers) == 1 && answers[0].Granted {
			return lease.Lease{Key: w.req.Key, Owner: w.req.Owner, Token: answers[0].Token}, nil
		}
		select {
		case l := <-w.got:
			return l, nil
		case <-ctx.Done():
			return lease.Lease{}, fmt.Errorf("paxosbridge: %q could not be had in time to move it: %w", w.req.Key, ctx.Err())
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// giveBack releases what a mover has or may have. If that fails it expires.
func (b *Bridge) giveBack(store lease.Store, l lease.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.MoveTimeout)
	defer cancel()
	if _, err := store.Release(ctx, []lease.Lease{l}); err != nil {
		b.cfg.Logger.WarnContext(ctx, "paxosbridge: a mover's lease could not be given back and will expire", "key", l.Key, "error", err)
	}
	b.ears.tell(l.Key)
}
