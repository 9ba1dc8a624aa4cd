package rowlock

import (
	"cmp"
	"context"
	"errors"
	"sort"
	"time"

	"github.com/rowlockdb/rowlock/internal/handback"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

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

// unlock releases all locks, or passes them on to the heirs: the first locks' or none.
func (ls *Locks) unlock(ctx context.Context, minHold bool, heirs []*handback.Heir) error {
	ls.cancel(ls.cause())
	for _, stop := range ls.stops {
		stop() // or each would start a goroutine to say what has been said
	}
	all := make([]error, len(ls.locks))
	var holds []*hold
	var next []*handback.Heir // of holds
	var at []int              // where they are in locks
	for i, l := range ls.locks {
		last, err := l.close()
		if all[i] = err; last || !minHold && l.h.isKept() {
			holds, at = append(holds, l.h), append(at, i)
			if i < len(heirs) {
				next = append(next, heirs[i])
			} else if heirs != nil {
				next = append(next, nil)
			}
		}
	}
	errs := make([]error, len(holds))
	ctx, missing := orBackground(ctx)
	ls.k.release(ls.k.returns.Within(ctx), ctx, holds, next, errs, minHold)
	for n, i := range at {
		all[i] = errs[n]
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
