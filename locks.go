package rowlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/lease"
)

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

// RLockAll waits until it shares the locks on all keys, as LockAll does for Lock: it holds none of
// them while it waits for another, unless the client is Fair.
func (c *Client) RLockAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	return c.all(ctx, keys, sharing(opts), true)
}

// TryRLockAll shares the locks on all keys, or none, as TryLockAll does for TryLock. Other callers
// may for a moment find a key shared that its asker does not keep.
func (c *Client) TryRLockAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	return c.all(ctx, keys, sharing(opts), false)
}

func (c *Client) all(ctx context.Context, keys []string, opts []Option, wait bool) (out *Locks, err error) {
	keys, err = eachOnce(keys, "together", "lock one key that stands for all of them")
	if err != nil {
		return nil, err
	}
	got := c.newCall(wait, keys...)
	if err := c.check(ctx, got, opts); err != nil {
		return nil, err
	}
	var locks []*Lock
	defer func() {
		if out == nil { // also after a panic in a hook
			for _, l := range locks {
				_ = l.Unlock(ctx)
			}
		}
	}()
	if above := chainOf(ctx); above != nil {
		locks, err = c.reenter(ctx, above, got)
	}
	if err == nil && len(got.Keys) > 0 {
		err = c.get(ctx, got)
	}
	if err != nil {
		return nil, err
	}
	return c.together(ctx, got.holds, locks), nil
}

// together returns the handle of what a call has got, with the locks that its ctx held before.
func (c *Client) together(ctx context.Context, holds []*hold, locks []*Lock) *Locks {
	for _, h := range holds {
		locks = append(locks, newLock(h, nil))
	}
	slices.SortFunc(locks, func(a, b *Lock) int { return cmp.Compare(a.Key(), b.Key()) })
	return newLocks(ctx, &c.keeper, locks)
}

// Locks are keys that were locked together. Each is a Lock like any other; here is what a caller
// does with all of them. Its methods are safe for concurrent use. Do not copy it.
type Locks struct {
	k      *keeper
	locks  []*Lock // in key order
	ctx    context.Context
	cancel context.CancelCauseFunc
	stops  []func() bool // listening for the end of each
}

func newLocks(ctx context.Context, k *keeper, locks []*Lock) *Locks {
	ls := &Locks{k: k, locks: locks}
	ctx = context.WithoutCancel(ctx)
	for _, l := range locks {
		ctx = &chain{Context: ctx, held: l.h, up: chainOf(ctx)}
	}
	ls.ctx, ls.cancel = context.WithCancelCause(ctx)
	for _, l := range locks {
		// It refers to no handle, or a forgotten one would never become garbage.
		cancel, each := ls.cancel, l.Context()
		ls.stops = append(ls.stops, context.AfterFunc(each, func() { cancel(context.Cause(each)) }))
	}
	return ls
}

// Keys are what is locked, in byte order, each once.
func (ls *Locks) Keys() []string {
	keys := make([]string, len(ls.locks))
	for i, l := range ls.locks {
		keys[i] = l.Key()
	}
	return keys
}

// Lock returns the lock on one of the keys, for its Token, or to release it before the others. It
// is nil for any other key.
func (ls *Locks) Lock(key string) *Lock {
	i := sort.Search(len(ls.locks), func(i int) bool { return ls.locks[i].Key() >= key })
	if i == len(ls.locks) || ls.locks[i].Key() != key {
		return nil
	}
	return ls.locks[i]
}

// Context ends when the first of the locks does, with its cause: ErrUnlocked, ErrLost, ErrMaxHold
// or ErrIdle. The others are then still held, until Unlock. It carries the values of the context
// given to LockAll, but not its cancellation or deadline.
func (ls *Locks) Context() context.Context { return ls.ctx }

// Deadline is the earliest of the locks' deadlines: until when all of them can be trusted if no
// renewal succeeds any more.
func (ls *Locks) Deadline() time.Time {
	earliest := ls.locks[0].Deadline()
	for _, l := range ls.locks[1:] {
		if d := l.Deadline(); d.Before(earliest) {
			earliest = d
		}
	}
	return earliest
}

// Progress is Lock.Progress for each of the locks. Its error is the first there is in key order.
func (ls *Locks) Progress() (err error) {
	for _, l := range ls.locks {
		err = cmp.Or(err, l.Progress())
	}
	return err
}

// Fence is Lock.Fence for each of the locks, in key order, so that two such transactions cannot
// deadlock by it. It is a statement for each, and on MySQL and MariaDB a second one for a lease of
// which a third has passed. Its error is the first there is, and names the key. Then roll back.
func (ls *Locks) Fence(ctx context.Context, tx Tx) error {
	return ls.each(func(l *Lock) error { return l.Fence(ctx, tx) })
}

// FenceIn is Fence for a transaction of another kind than database/sql's; see dialect/postgres.
func (ls *Locks) FenceIn(ctx context.Context, tx lease.Runner) error {
	return ls.each(func(l *Lock) error { return l.FenceIn(ctx, tx) })
}

// UnlockTx is Lock.UnlockTx for each of the locks, in key order: all are free exactly when tx
// commits. Call Unlock afterwards all the same, as defer does. After an error roll back.
func (ls *Locks) UnlockTx(ctx context.Context, tx Tx) error {
	return ls.each(func(l *Lock) error { return l.UnlockTx(ctx, tx) })
}

// UnlockIn is UnlockTx for a transaction of another kind than database/sql's; see dialect/postgres.
func (ls *Locks) UnlockIn(ctx context.Context, tx lease.Runner) error {
	return ls.each(func(l *Lock) error { return l.UnlockIn(ctx, tx) })
}

func (ls *Locks) each(f func(l *Lock) error) error {
	for _, l := range ls.locks {
		if err := f(l); err != nil {
			return err
		}
	}
	return nil
}

// Unlock releases all locks in one call to the store and ends their contexts with ErrUnlocked. Like
// Lock.Unlock it works with a canceled ctx.
//
// Its error joins those of the locks that were not simply released, in key order, as Lock.Unlock
// returns them: ErrLost, ErrMaxHold, ErrIdle or ErrUnknown, with the key. A lock that was released
// before by itself is no error; if all were, it is ErrUnlocked.
func (ls *Locks) Unlock(ctx context.Context) error { return ls.unlock(ctx, true, nil) }

// UnlockNow is Lock.UnlockNow for all locks, in one call to the store.
func (ls *Locks) UnlockNow(ctx context.Context) error { return ls.unlock(ctx, false, nil) }

// unlock releases all locks, or passes them on to the next owners: the first locks' or none.
func (ls *Locks) unlock(ctx context.Context, minHold bool, nextOwners []*queue.NextOwner) error {
	ls.cancel(ls.cause())
	for _, stop := range ls.stops {
		stop() // or each would start a goroutine to say what has been said
	}
	all := make([]error, len(ls.locks))
	var parts []parting
	var at []int // where they are in locks
	for i, l := range ls.locks {
		due, err := l.close(minHold)
		if all[i] = err; due {
			p := parting{h: l.h}
			if i < len(nextOwners) {
				p.next = nextOwners[i]
			}
			parts, at = append(parts, p), append(at, i)
		}
	}
	missing := isnil.Context("Unlock", ctx)
	if missing != nil {
		ctx = context.Background() // see Lock.unlock
	}
	for n := 0; n < len(parts); {
		// A Reentrant handle may be of another client, which outlives this one.
		k, from := parts[n].h.k, n
		for n++; n < len(parts) && parts[n].h.k == k; n++ {
		}
		k.release(k.returns.Within(ctx), ctx, parts[from:n], minHold)
	}
	for n, i := range at {
		all[i] = parts[n].err
	}
	return oneline.Join(joined(all), missing)
}

// joined leaves out the locks that were released before, unless all were.
func joined(errs []error) error {
	var before error
	n := 0
	for i, err := range errs {
		if errors.Is(err, ErrUnlocked) {
			before, errs[i] = err, nil
			n++
		}
	}
	if n > 0 && n == len(errs) {
		return before
	}
	return oneline.Join(errs...)
}

// cause is why the first lock that is over has ended, if any has.
func (ls *Locks) cause() error {
	for _, l := range ls.locks {
		if cause := context.Cause(l.Context()); cause != nil {
			return cause
		}
	}
	return ErrUnlocked
}
