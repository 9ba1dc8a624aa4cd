package rowlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/reaper"
	"github.com/rowlockdb/rowlock/watchdog"
)

// TryLock gets the lock on key if it is free, and otherwise returns a *HeldError at once. It writes
// nothing when it loses.
//
// It waits for a database that does not answer until ctx ends, or without a deadline for the TTL
// and a second.
//
// ctx bounds the call, not the lock: the lock is held until Unlock, MaxHold or its loss, even if
// ctx ends before.
func (c *Client) TryLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	return c.take(ctx, c.newCall(false, key), opts)
}

// Lock waits until it has the lock on key or ctx ends; then the error is ctx.Err() and ErrHeld (or
// ErrBusy). It does not wait for a database that fails otherwise: it returns that error after a few
// tries.
//
// Callers of one client are served in the order they came. Between clients there is no order unless
// they are Fair: the first to ask when the key is released gets it. A client keeps a key among its
// own callers for a bounded time only (Config.HandOvers).
//
// ctx bounds the waiting, not the lock: the lock is held until Unlock, MaxHold or its loss, even if
// ctx ends before.
func (c *Client) Lock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	return c.take(ctx, c.newCall(true, key), opts)
}

// TryLockAny gets the lock on one of the keys, whichever is free, in one statement, and otherwise
// none: then the error is a *HeldError, or several joined in key order, of every key that is known
// to be held. It does not wait, and writes nothing when it loses. Lock.Key says which key it is.
//
// It begins at a random key. A key that comes twice counts once. There may be 1 to 512 of them. A
// key that can never be granted, as one that has moved to a cluster, is passed over, and its error
// is returned if no other is free.
//
// Keys that ctx holds already are left out, because they cannot be released while the call waits;
// if no other is left, the error is a *DeadlockError. With Reentrant it is the other way round: the
// call returns another handle of the first that ctx holds alone. A key that ctx shares by RLock is
// left out in any case; if no other is left, the error is ErrUpgrade.
//
// In a Fair client, and on a store that is no lease.AnyAcquirer, as those of forupdate and
// optimistic and a bridge, the keys are asked for one after the other until one is granted.
func (c *Client) TryLockAny(ctx context.Context, keys []string, opts ...Option) (*Lock, error) {
	return c.any(ctx, keys, opts, false)
}

// LockAny waits until it has the lock on one of the keys, the first that is released, or until ctx
// ends; then the error is ctx.Err() and ErrHeld (or ErrBusy), as with Lock. Keys and options are as
// for TryLockAny. It never keeps more than one key.
//
// It waits in the queue of each key at once, in the order of calls as Lock does. A release wakes
// one call: one that has a key already, or gets another at that moment, lets the next one go on. In
// a Fair client it has a place in the order of each key, takes the first key of which its turn has
// come, and leaves the other queues, with two statements more. A turn of another key that came
// meanwhile passes to the next waiter.
//
// It takes no part in the search for cycles, because the release of any key ends its wait: the
// locks that its ctx holds are never named, and it does not return ErrDeadlock after it has begun
// to wait.
func (c *Client) LockAny(ctx context.Context, keys []string, opts ...Option) (*Lock, error) {
	return c.any(ctx, keys, opts, true)
}

// RLock waits until it shares the lock on key with other readers, or ctx ends; then the error is
// that of Lock. Readers hold a key together; Lock of the same key waits until the last of them has
// unlocked it, and readers wait while Lock holds it. The handle is that of Lock: its lease is
// renewed, its Fence checks it in your transaction, and it is lost as any other.
//
// The fences of two readers pass side by side, and no writer is granted the key before the last of
// them has ended. All readers of a key at one time have the same Token: it orders them against
// writers, and not among each other.
//
// Writers go first: once Lock waits for a key that readers hold, no more readers are let in, but
// for 1 s of every 11 s, first within 16 s, so that a reader which holds the key for long keeps no
// others from reading. When the key is free, readers and writers get it in the order that Lock
// describes; a Fair client's readers take a ticket if they cannot join, and are served in turn.
//
// Readers cannot become writers: Lock with the ctx of a reader returns ErrUpgrade, because two
// readers that did so would wait for each other. Unlock first, or Lock and then Downgrade. RLock of
// a key that ctx holds already is ErrDeadlock, or with Reentrant another handle of that lock.
//
// The store must be a lease.Sharer: Open's is. Otherwise the error is ErrUnsupported.
func (c *Client) RLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	return c.take(ctx, c.newCall(true, key), sharing(opts))
}

// TryRLock shares the lock on key if it is free, or held by readers and no writer waits for it.
// Otherwise it returns a *HeldError at once.
func (c *Client) TryRLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	return c.take(ctx, c.newCall(false, key), sharing(opts))
}

// DoShared is Do with RLock: f runs while the key is shared.
func (c *Client) DoShared(
	ctx context.Context, key string, f func(ctx context.Context, l *Lock) error, opts ...Option,
) error {
	return c.Do(ctx, key, f, sharing(opts)...)
}

// sharing returns opts with what makes Lock an RLock.
func sharing(opts []Option) []Option {
	return append(opts[:len(opts):len(opts)], func(r *request) error {
		r.Want.Shared = true
		return nil
	})
}

// Do runs f while holding the lock on key. The context f gets ends with ctx or with the lock,
// whichever is first. The error is f's, joined with ErrLost, ErrMaxHold or ErrIdle if the lock
// ended before f returned. A release that fails at once is no error: f has done its work, and the
// client goes on trying.
func (c *Client) Do(
	ctx context.Context, key string, f func(ctx context.Context, l *Lock) error, opts ...Option,
) (err error) {
	if f == nil {
		return fmt.Errorf("%w: Do of %q: the function is nil", lease.ErrConfig, key)
	}
	l, err := c.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	ctx, cancel := l.Within(ctx)
	defer cancel()
	defer func() {
		unlock := l.Unlock(ctx)
		if errors.Is(unlock, ErrLost) || errors.Is(unlock, ErrMaxHold) || errors.Is(unlock, ErrIdle) {
			err = oneline.Join(err, unlock)
		}
	}()
	return f(ctx, l)
}

// take gets the one lock that a call is for.
func (c *Client) take(ctx context.Context, got *call, opts []Option) (*Lock, error) {
	if err := c.check(ctx, got, opts); err != nil {
		return nil, err
	}
	if above := chainOf(ctx); above != nil {
		nested, err := c.reenter(ctx, above, got)
		if err != nil {
			return nil, err
		}
		if len(nested) > 0 {
			return nested[0], nil
		}
	}
	if err := c.get(ctx, got); err != nil {
		return nil, err
	}
	return newLock(got.holds[0], nil), nil
}

func (c *Client) any(ctx context.Context, keys []string, opts []Option, wait bool) (*Lock, error) {
	keys, err := eachOnce(keys, "at once", "take fewer of them")
	if err != nil {
		return nil, err
	}
	got := c.newCall(wait, keys...)
	got.Any, got.N = true, 1
	return c.take(ctx, got, opts)
}

// get gets all keys of a call. Of a part it keeps nothing, nor if a hook panics.
func (c *Client) get(ctx context.Context, got *call) (err error) {
	if !c.calls.Enter() { // Close waits for this call: a grant at the last moment must be released
		return queue.Closed(got.Keys)
	}
	defer c.calls.Leave()
	wanted := cmp.Or(got.N, len(got.Keys))
	if got.space != nil {
		if err := got.enter(wanted); err != nil {
			return err
		}
		defer got.leave(wanted)
	}
	whole := false
	defer func() {
		if !whole && len(got.holds) > 0 {
			c.discard(ctx, got.holds)
		}
	}()
	if !got.wait {
		err = c.try(ctx, got)
	}
	for err == nil && got.wait && len(got.holds) < wanted {
		next := c.next(ctx, got)
		g, lost := c.asker.Wait(ctx, c.queue, next)
		err = c.waited(ctx, got, next, g, lost)
	}
	whole = err == nil
	return err
}

// discard releases what a call has got and does not keep.
func (c *Client) discard(ctx context.Context, holds []*hold) {
	c.release(c.returns.Within(ctx), ctx, partings(holds), false)
}

// try asks once.
func (c *Client) try(ctx context.Context, got *call) (err error) {
	got.began = time.Now()
	var g queue.Grants
	if got.Want.Shared {
		g, err = c.asker.Share(ctx, &got.Call)
	} else {
		g, err = c.asker.Ask(ctx, &got.Call, got.Requests())
	}
	if err != nil {
		return err
	}
	return c.hold(ctx, got, g)
}

// next is what a call waits for: all keys together, or in a fair client the next of them, with a
// ticket of its own: because all callers go by key order, their waits form no circle.
func (c *Client) next(ctx context.Context, got *call) *queue.Call {
	next := &got.Call
	if c.cfg.Fair && len(got.Keys) > 1 && !got.Any {
		next = &queue.Call{Keys: got.Keys[len(got.holds):][:1], Want: got.Want}
	}
	if chain := chainOf(ctx); !got.Any && (chain != nil || len(got.holds) > 0) {
		next.Want.Holder = above{chain, c.tables, got.holds}
	}
	got.began = time.Now()
	if room := c.room.Load(); room != nil {
		room.Leave(ctx, next.Keys, c.closed)
	}
	return next
}

// waited keeps what was waited for, unless what the call has got before was lost meanwhile.
func (c *Client) waited(ctx context.Context, got *call, next *queue.Call, g queue.Grants, err error) error {
	if c.trace != nil {
		c.trace.Waited(next.Keys, next.Want.Note, got.began, err)
	}
	if err == nil {
		err = c.hold(ctx, got, g)
	}
	for i := 0; err == nil && i < len(got.holds)-1; i++ {
		if cause := got.holds[i].why(); cause != nil {
			err = fmt.Errorf("%w: %q, while others were waited for", cause, got.holds[i].lease.Key)
		}
	}
	if err != nil {
		c.demanded(next.Want.Holder, err)
	}
	return err
}

// hold keeps grants alive. What it cannot keep is the orphan cleaner's.
func (c *Client) hold(ctx context.Context, got *call, g queue.Grants) error {
	made := 0
	defer func() { // also after a panic in a hook
		if made == len(g.Each) {
			return
		}
		left := g.Leases()[made:]
		c.orphans.AddLeases(left...)
		for _, l := range left {
			c.queue.Wake(l.Key)
		}
	}()
	for made < len(g.Each) {
		if got.each != nil {
			ctx = got.each[made]
		}
		h := newHold(ctx, &c.keeper, g, made, &got.request)
		got.made++
		if err := c.watch(h, g.Sent); err != nil {
			h.end(ErrLost, onRefusal) // what is deferred above gives the lease to the cleaner
			c.remove(h)
			return err
		}
		made++
		got.holds = append(got.holds, h)
		if h.lease.Shared {
			c.queue.Wake(h.lease.Key) // others of this process that wait can share it
		} else {
			c.queue.Granted(h.lease.Key, h.lease.Token, g.Sent, time.Since(g.Sent))
		}
		if c.cfg.EvictAfter > 0 {
			c.evictions.Forget(h.lease.Key)
		}
		h.acquired(ctx, got.began, g.HandedOver)
	}
	return nil
}

// elect returns what takes a lock of the client's own.
func (c *Client) elect(key, note string) reaper.Elect {
	return func(ctx context.Context) (context.Context, func(), error) {
		got := c.newCall(false, key)
		got.maxHold, got.maxIdle, got.Want.Quiet = 0, 0, true
		got.note(note)
		if err := c.get(ctx, got); err != nil {
			return nil, nil, err
		}
		l := newLock(got.holds[0], nil)
		return l.Context(), func() { _ = l.Unlock(context.WithoutCancel(ctx)) }, nil
	}
}

// newHold makes a hold of grant i.
func newHold(ctx context.Context, k *keeper, g queue.Grants, i int, r *request) *hold {
	h := &hold{k: k, asked: g.Sent.Sub(k.began), extras: &noExtras}
	h.handles = 1
	if k.cfg.Hooks.Acquired != nil {
		h.endHook = new(func())
	}
	answer := &g.Each[i].Answer
	slot, traced := r.Within != nil, k.trace != nil || k.cfg.Debug
	if slot || traced || answer.Unknown || r.minHold > 0 || r.maxIdle > 0 || r.space != nil {
		h.extras = &extras{
			minHold: r.minHold, late: time.Since(g.Sent), maxIdle: r.maxIdle, space: r.space,
			note: r.Want.Note, slotOf: answer.Generation, slot: slot, uncertain: answer.Unknown,
		}
	}
	if k.cfg.Debug {
		h.taken = make([]uintptr, 32)
		h.taken = h.taken[:runtime.Callers(2, h.taken)]
	}
	h.ctx.chain = chain{Context: ctx, held: h, up: chainOf(ctx)}
	h.lease = watchdog.Held{
		Lease: g.Lease(i), TTL: r.Want.TTL, Margin: r.margin, Every: r.every,
		Holder: h, Quiet: r.Want.Quiet, Renewed: answer.Unknown || g.Shared || g.HandedOver,
	}
	if r.maxHold > 0 {
		h.lease.Until = g.Sent.Add(r.maxHold)
	}
	return h
}
