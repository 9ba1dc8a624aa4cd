package rowlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/reaper"
)

// maxTogether is how many keys can be locked together: as many as fit into one statement.
const maxTogether = 512

// TryLock gets the lock on key if it is free, and otherwise returns a *HeldError at once. It writes
// nothing when it loses.
//
// It waits for a database that does not answer until ctx ends, or without a deadline for the TTL
// and a second.
//
// ctx bounds the call, not the lock: the lock is held until Unlock, MaxHold or its loss, even if
// ctx ends before.
func (c *Client) TryLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	return c.one(ctx, key, opts, false)
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
	return c.one(ctx, key, opts, true)
}

// TryLockAll gets the locks on all keys if all are free, in one statement, and otherwise none: then
// the error is a *HeldError, or several joined in key order, of every key that is known to be held.
// It never waits, and writes nothing when it loses.
//
// Order does not matter, and a key that comes twice is locked once. There may be 1 to 512 of them.
// Every option applies to each lock.
//
// In a Fair client, and on a store that is no lease.AllAcquirer, as those of forupdate and
// optimistic, the keys are asked for in one batch, and what was granted is released if not all
// were: other callers may find a key held that its asker does not keep.
func (c *Client) TryLockAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	return c.all(ctx, keys, opts, false)
}

// LockAll waits until it has the locks on all keys or ctx ends; then the error is ctx.Err() and
// ErrHeld (or ErrBusy), as with Lock. Keys and options are as for TryLockAll.
//
// It holds none of the keys while it waits for another. So it keeps no other caller from working,
// and cannot deadlock unless its caller holds other locks already. The price is that all keys must
// be free at one moment: if one is always held, LockAll can wait for ever. Give it a ctx that ends,
// or have it served in order: LockAll of a Fair client locks one key after the other, in key order,
// and keeps what it has while it waits for the next. It cannot deadlock with another LockAll, but
// with a caller that holds a later key and waits for an earlier one.
func (c *Client) LockAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	return c.all(ctx, keys, opts, true)
}

// Do runs f while holding the lock on key. The context f gets ends with ctx or with the lock,
// whichever is first. The error is f's, joined with ErrLost or ErrMaxHold if the lock ended before
// f returned. A release that fails at once is no error: f has done its work, and the client goes on
// trying.
func (c *Client) Do(
	ctx context.Context, key string, f func(ctx context.Context, l *Lock) error, opts ...Option,
) (err error) {
	l, err := c.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })()
	defer func() {
		if unlock := l.Unlock(ctx); errors.Is(unlock, ErrLost) || errors.Is(unlock, ErrMaxHold) {
			err = oneline.Join(err, unlock)
		}
	}()
	return f(ctx, l)
}

// call is one call for one or more keys, and the locks it has got.
type call struct {
	request
	wait  bool // for keys that are held
	locks []*Lock

	key  [1]string // room for Keys and locks, because most calls lock one key
	lock [1]*Lock
}

// newCall returns a call without options.
func (c *Client) newCall(keys []string, wait bool) *call {
	got := &call{wait: wait}
	got.Keys = keys
	got.Want = acquire.Want{TTL: c.cfg.TTL, Priority: 5}
	got.margin, got.every, got.maxHold = c.cfg.Margin, c.cfg.RenewEvery, c.cfg.MaxHold
	return got
}

// newCallFor is newCall for a single key.
func (c *Client) newCallFor(key string, wait bool) *call {
	got := c.newCall(nil, wait)
	got.key[0] = key
	got.Keys, got.locks = got.key[:], got.lock[:0]
	return got
}

func (c *Client) one(ctx context.Context, key string, opts []Option, wait bool) (*Lock, error) {
	got := c.newCallFor(key, wait)
	if err := c.check(got, opts); err != nil {
		return nil, err
	}
	if err := c.get(ctx, got); err != nil {
		return nil, err
	}
	return got.locks[0], nil
}

func (c *Client) all(ctx context.Context, keys []string, opts []Option, wait bool) (*Locks, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	switch n := len(keys); {
	case n == 0:
		return nil, fmt.Errorf("%w: no keys to lock; name at least one", lease.ErrConfig)
	case n > maxTogether:
		return nil, fmt.Errorf("%w: %d keys to lock together; at most %d are allowed: "+
			"lock one key that stands for all of them", lease.ErrConfig, n, maxTogether)
	}
	got := c.newCall(keys, wait)
	if err := c.check(got, opts); err != nil {
		return nil, err
	}
	if err := c.get(ctx, got); err != nil {
		return nil, err
	}
	return newLocks(ctx, &c.keeper, got.locks), nil
}

// elect takes the reaper's lock.
func (c *Client) elect(ctx context.Context) (context.Context, func(), error) {
	got := c.newCallFor(reaper.Key, false)
	got.maxHold, got.Want.Note, got.Want.Quiet = 0, "rowlock reaper", true
	if err := c.get(ctx, got); err != nil {
		return nil, nil, err
	}
	l := got.locks[0]
	return l.Context(), func() { _ = l.Unlock(context.WithoutCancel(ctx)) }, nil
}

// check refuses a call before anything is sent.
func (c *Client) check(got *call, opts []Option) error {
	if c.isClosed() {
		return acquire.Closed(got.Keys)
	}
	for _, key := range got.Keys {
		if err := lease.CheckKey(key); err != nil {
			return err
		}
	}
	err := got.apply(opts)
	got.Want.Show = c.show(got.onWait)
	return err
}

// show is what a waiting call tells its position to, or nil.
func (c *Client) show(onWait func(Waiting)) func(string, acquire.Position) {
	hook := c.cfg.Hooks.Waiting
	if hook == nil && onWait == nil {
		return nil
	}
	return func(key string, p acquire.Position) {
		if hook != nil {
			hook(key, Waiting(p))
		}
		if onWait != nil {
			onWait(Waiting(p))
		}
	}
}

// get gets all keys of a call. Of a part it keeps nothing, nor if a hook panics.
func (c *Client) get(ctx context.Context, got *call) (err error) {
	if !c.calls.Enter() { // Close waits for this call: a grant at the last moment must be released
		return acquire.Closed(got.Keys)
	}
	defer c.calls.Leave()
	whole := false
	defer func() {
		if !whole && len(got.locks) > 0 {
			c.release(c.returns.Within(ctx), got.locks, make([]error, len(got.locks)), false)
		}
	}()
	if got.wait {
		err = c.wait(ctx, got)
	} else {
		err = c.try(ctx, got)
	}
	whole = err == nil
	return err
}

// try asks once.
func (c *Client) try(ctx context.Context, got *call) error {
	began := time.Now()
	g, err := c.asker.Ask(ctx, &got.Call, got.Requests())
	if err != nil {
		return err
	}
	return c.hold(ctx, got, g, began)
}

// wait waits for all keys together. In a fair client it waits for one after the other, each with a
// ticket of its own: because all callers go by key order, their waits form no circle.
func (c *Client) wait(ctx context.Context, got *call) error {
	for len(got.locks) < len(got.Keys) {
		next := &got.Call
		if c.cfg.Fair && len(got.Keys) > 1 {
			next = &acquire.Call{Keys: got.Keys[len(got.locks):][:1], Want: got.Want}
		}
		began := time.Now()
		g, err := c.asker.Wait(ctx, c.queue, next)
		if err == nil {
			err = c.hold(ctx, got, g, began)
		}
		if err == nil {
			err = got.over()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// over is why a lock ended while its call waited for other keys.
func (got *call) over() error {
	for _, l := range got.locks[:len(got.locks)-1] {
		if cause := context.Cause(l.ctx); cause != nil {
			return fmt.Errorf("%w: %q, while others were waited for", cause, l.held.Key)
		}
	}
	return nil
}

// hold makes locks of grants and keeps them alive. What it cannot keep is the orphan cleaner's.
func (c *Client) hold(ctx context.Context, got *call, g acquire.Grants, began time.Time) error {
	made := 0
	defer func() { // also after a panic in a hook
		for ; made < len(g.Reqs); made++ {
			c.orphans.Add(g.Reqs[made].Key, g.Reqs[made].Owner)
			c.queue.Wake(g.Reqs[made].Key)
		}
	}()
	for made < len(g.Reqs) {
		l := newLock(ctx, &c.keeper, g, made, &got.request)
		if err := c.watch(l, g.Sent); err != nil {
			l.finish(ErrLost)
			return err
		}
		made++
		got.locks = append(got.locks, l)
		c.queue.Granted(l.held.Key, l.held.Token, g.Sent)
		c.evictions.Forget(l.held.Key)
		if h := c.cfg.Hooks.Acquired; h != nil && !l.quiet {
			h(l.held.Key, l.held.Token, time.Since(began))
		}
	}
	return nil
}
