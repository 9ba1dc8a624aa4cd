package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/internal/handback"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
)

// Unlock releases the lock and ends its context with ErrUnlocked. It works with a canceled ctx, as
// in a deferred call: a lock left behind would block every other owner until it expires. Nothing of
// ctx but its values is used.
//
// nil means that the lock has ended and that the key is free for all clients of the database. The
// release need not be on the disk yet: a crash or a failover of the server soon after can undo it.
// The key is then locked for the rest of its TTL, without a holder. See Config.DurableRelease.
//
// It returns ErrLost if the lock was lost before (unless it was fenced, what was done under it may
// have met another owner's work), ErrMaxHold if it was held too long, ErrIdle if its holder showed
// no progress, ErrUnlocked if it was released already, and ErrUnknown if the database could not do
// it in 2 to 2.5 s; the client then goes on trying. Inside a transaction of its own that has fenced
// the lock and has not ended, Unlock cannot succeed: it returns ErrUnknown and says so, at once if
// tx is a *sql.Tx. The key is free soon after that transaction has ended. End it first, or use
// UnlockTx.
//
// The handle of a Reentrant call ends by its own Unlock. The row is released by the last of them.
func (l *Lock) Unlock(ctx context.Context) error { return l.unlock(ctx, true) }

// UnlockNow is Unlock without MinHold: the key is free at once, for work that has failed and is to
// be tried again. After an Unlock that has left the key to MinHold, UnlockNow frees it still,
// through the same client: nil if it did, ErrUnlocked if the key was not locked by this lock any
// more, ErrClosed after Close.
//
// Of several handles of a Reentrant lock the last one's call decides.
func (l *Lock) UnlockNow(ctx context.Context) error { return l.unlock(ctx, false) }

func (l *Lock) unlock(ctx context.Context, minHold bool) error {
	last, err := l.close()
	if !last && (minHold || !l.h.isKept()) {
		return err
	}
	var errs [1]error
	ctx, missing := orBackground(ctx)
	l.h.k.release(l.h.k.returns.Within(ctx), ctx, []*hold{l.h}, nil, errs[:], minHold)
	return oneline.Join(errs[0], missing)
}

// orBackground is ctx, or another one with the error that says that ctx is nil: a deferred Unlock
// whose error is ignored must release all the same.
func orBackground(ctx context.Context) (context.Context, error) {
	if err := isnil.Context("Unlock", ctx); err != nil {
		return context.Background(), err
	}
	return ctx, nil
}

// close ends a handle. It reports true if its hold is to be released, and otherwise the answer of
// its Unlock.
func (l *Lock) close() (last bool, err error) {
	runtime.SetFinalizer(l, nil)
	again, open := l.h.drop(l)
	if l.nested != nil {
		l.nested.stop()
		l.nested.cancel(ErrUnlocked)
	}
	switch ended := context.Cause(&l.h.ctx) != nil; {
	case again && open > 0:
		return false, fmt.Errorf("%w: %q was released already", ErrUnlocked, l.h.lease.Key)
	case again, open > 0 && ended:
		return false, l.h.afterwards()
	}
	return open == 0, nil
}

// drop forgets a handle, and returns how many are left.
func (h *hold) drop(l *Lock) (again bool, open int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if again = l.closed; !again {
		l.closed = true
		h.handles--
	}
	return again, h.handles
}

// enter counts another handle. It reports false if the hold is over.
func (h *hold) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.handles == 0 {
		return false
	}
	h.handles++
	return true
}

// leak releases the lock of a handle that its caller has forgotten: the garbage collector calls it.
func (l *Lock) leak() {
	h := l.h
	// A bubble of testing/synctest, whose clock begins in 2000, forbids others to touch its
	// channels.
	if h.since.Year() < 2020 || context.Cause(&h.ctx) != nil {
		return // or it was lost, or its client closed: nothing is held
	}
	last, _ := l.close()
	age := time.Since(h.since)
	h.k.counts.leaks.Add(1)
	h.k.cfg.Logger.LogAttrs(&h.ctx, slog.LevelWarn,
		"rowlock: a lock was forgotten: its handle is garbage, and Unlock was not called; releasing it",
		slog.String("key", h.lease.Key), slog.Int64("token", h.lease.Token),
		slog.Duration("age", age), slog.String("taken", h.where()))
	if leaked := h.k.cfg.Hooks.Leaked; leaked != nil {
		leaked(&h.ctx, h.lease.Key, h.lease.Token, age, h.where())
	}
	if last && h.k.calls.Enter() { // Close waits for it, or has ended the lock
		go func() { // not on the garbage collector's goroutine
			defer h.k.calls.Leave()
			var errs [1]error
			h.k.release(h.k.returns.Within(context.Background()), nil, []*hold{h}, nil, errs[:], true)
		}()
	}
}

// release gives locks up in one call to the store for each way to do it, and notes for each the
// error of its Unlock. minHold leaves those locked whose MinHold is not over; without it, those
// that were left so before are released too. heirs, if there are any, get the slots of holds. Hooks
// get the ctx of the caller, or each lock's own if caller is nil.
func (k *keeper) release(
	ctx, caller context.Context, holds []*hold, heirs []*handback.Heir, errs []error, minHold bool,
) {
	open := k.calls.Enter() // Close waits for this call, or has ended the locks already
	if open {
		defer k.calls.Leave()
	}
	items := handback.Items(len(holds))
	for n, h := range holds {
		items[n].Lease = h.id()
		switch {
		case h.finish(ErrUnlocked), !minHold && open && h.takeBack():
			h.describe(items[n], minHold)
			if heirs != nil {
				items[n].Heir = heirs[n]
			}
		case !minHold && h.isKept():
			errs[n], items[n] = acquire.Closed([]string{h.lease.Key}), nil
		case h.lingers():
			errs[n], items[n].Keep = h.afterwards(), h.keep(minHold)
		default:
			errs[n], items[n] = h.afterwards(), nil
		}
	}
	for n, h := range holds {
		h.releasing(h.told(caller), items[n])
	}
	k.returns.GiveUp(ctx, items)
	for n, h := range holds {
		if items[n] == nil {
			continue
		}
		h.noteKept(items[n])
		h.makeRoom()
		told := h.told(caller)
		if errs[n] == nil {
			errs[n] = h.settle(told, items[n], !minHold && h.wasKept())
		} else if items[n].Err != nil {
			h.unlockFailed(told, items[n].Err)
		}
	}
}

// told is the ctx of a hook: the caller's, or the lock's own if caller is nil.
func (h *hold) told(caller context.Context) context.Context {
	if caller == nil {
		return &h.ctx
	}
	return caller
}

// releasing tells of a key that is about to be free, if i is to be given up.
func (h *hold) releasing(ctx context.Context, i *handback.Item) {
	releasing := h.hooks(ctx).Releasing
	if releasing == nil || i == nil || h.lease.Quiet || i.Keep > 0 || i.Left {
		return
	}
	releasing(ctx, h.lease.Key, h.lease.Token)
}

// keep is how long the key stays locked after its release.
func (h *hold) keep(minHold bool) time.Duration {
	if minHold {
		return h.rest()
	}
	return 0
}

// noteKept notes that MinHold has left the key locked.
func (h *hold) noteKept(i *handback.Item) {
	if i.Keep > 0 && !i.Gone {
		h.mu.Lock()
		h.kept = true
		h.mu.Unlock()
	}
}

// isKept reports whether MinHold has left the key locked.
func (h *hold) isKept() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kept
}

// wasKept reports whether the key was released after MinHold had left it locked.
func (h *hold) wasKept() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.back
}

// takeBack begins to release what MinHold has left locked. It reports false if there is nothing.
func (h *hold) takeBack() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.kept
	h.kept, h.back = false, h.back || kept
	return kept
}

// describe says how a lock that has just ended is given up.
func (h *hold) describe(i *handback.Item, minHold bool) {
	i.Fenced, i.Left = h.k.dog.InTx(&h.lease)
	i.Open, i.Doubtful, i.Slot = h.inOwnTx(), h.doubtful, h.slot
	i.Keep = h.keep(minHold)
}

// settle answers an Unlock by what became of the lease. back says that an Unlock before has left it
// to MinHold, and has told the hooks of its end.
func (h *hold) settle(ctx context.Context, i *handback.Item, back bool) error {
	if i.Err != nil {
		h.unlockFailed(ctx, i.Err)
	}
	switch {
	case back && i.Err == nil && i.Gone:
		return fmt.Errorf("%w: %q: its MinHold is over", ErrUnlocked, h.lease.Key)
	case back:
		return i.Err
	case i.Err != nil: // it has ended for its holder
	case i.Gone && !i.Left:
		h.lost(ErrLost)
		return fmt.Errorf("%w: unlock %q: its row no longer names token %d: "+
			"the lease ran out and the key was taken, or its row was removed",
			ErrLost, h.lease.Key, h.lease.Token)
	}
	h.released(ctx)
	return i.Err
}

// unlockFailed tells of a row that may still be locked.
func (h *hold) unlockFailed(ctx context.Context, err error) {
	if h.lease.Quiet {
		return
	}
	h.k.counts.unlockFailed.Add(1)
	if failed := h.hooks(ctx).UnlockFailed; failed != nil {
		failed(ctx, h.lease.Key, h.lease.Token, err)
	}
}

// afterwards answers an Unlock that came too late.
func (h *hold) afterwards() error {
	<-h.ctx.Done() // the call that ended the lock may not have said why yet
	cause := context.Cause(&h.ctx)
	if !errors.Is(cause, ErrUnlocked) {
		return fmt.Errorf("%w: %q", cause, h.lease.Key)
	}
	if h.wasLeaving() {
		return nil // UnlockTx did it
	}
	return fmt.Errorf("%w: %q was released already", ErrUnlocked, h.lease.Key)
}

// lingers reports whether the key of a lock that is over is still locked although its holder is
// done: after MaxHold and MaxIdle, waiters need not wait for the expiry, but for MinHold.
func (h *hold) lingers() bool {
	<-h.ctx.Done()
	cause := context.Cause(&h.ctx)
	return errors.Is(cause, ErrMaxHold) || errors.Is(cause, ErrIdle)
}

// inOwnTx reports whether the last transaction that fenced the lock is certainly open. It sends
// nothing: a *sql.Tx, and what embeds one, knows by itself whether Commit or Rollback was called.
// It refuses a statement of no pool, but only after it has found that it is not over.
func (h *hold) inOwnTx() bool {
	h.mu.Lock()
	tx := h.tx
	h.tx = nil
	h.mu.Unlock()
	t, ok := tx.(interface {
		StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt
	})
	return ok && !errors.Is(t.StmtContext(context.Background(), new(sql.Stmt)).Close(), sql.ErrTxDone)
}
