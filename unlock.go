package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/handback"
)

// Unlock releases the lock and ends its context with ErrUnlocked. It works with a canceled ctx, as
// in a deferred call: a lock left behind would block every other owner until it expires. Nothing of
// ctx but its values is used.
//
// It returns ErrLost if the lock was lost before (unless it was fenced, what was done under it may
// have met another owner's work), ErrMaxHold if it was held too long, ErrUnlocked if it was
// released already, and ErrUnknown if the database could not do it in 2 to 2.5 s; the client then
// goes on trying. Inside a transaction of its own that has fenced the lock and has not ended,
// Unlock cannot succeed: it returns ErrUnknown and says so, at once if tx is a *sql.Tx. The key is
// free soon after that transaction has ended. End it first, or use UnlockTx.
func (l *Lock) Unlock(ctx context.Context) error {
	var err [1]error
	l.k.release(l.k.returns.Within(ctx), []*Lock{l}, err[:], true)
	return err[0]
}

// release gives locks up in one call to the store for each way to do it, and notes for each the
// error of its Unlock. minHold leaves those locked whose MinHold is not over.
func (k *keeper) release(ctx context.Context, locks []*Lock, errs []error, minHold bool) {
	if k.calls.Enter() { // Close waits for this call, or has ended the locks already
		defer k.calls.Leave()
	}
	items := handback.Items(len(locks))
	for n, l := range locks {
		items[n].Lease = l.held.Lease
		if l.finish(ErrUnlocked) {
			l.describe(items[n], minHold)
		} else if errs[n] = l.afterwards(); !l.lingers() {
			items[n] = nil
		}
	}
	k.returns.GiveUp(ctx, items)
	for n, l := range locks {
		if errs[n] == nil && items[n] != nil {
			errs[n] = l.settle(items[n])
		}
	}
}

// describe says how a lock that has just ended is given up.
func (l *Lock) describe(i *handback.Item, minHold bool) {
	i.Fenced, i.Left = l.k.dog.InTx(&l.held)
	i.Open, i.Doubtful = l.inOwnTx(), l.doubtful
	if minHold {
		i.Keep = l.rest()
	}
}

// settle answers an Unlock by what became of the lease.
func (l *Lock) settle(i *handback.Item) error {
	switch {
	case i.Err != nil:
		return i.Err
	case i.Gone && !i.Left:
		l.report(ErrLost)
		return fmt.Errorf("%w: unlock %q: its row no longer names token %d: "+
			"the lease ran out and the key was taken, or its row was removed",
			ErrLost, l.held.Key, l.held.Token)
	}
	if h := l.k.cfg.Hooks.Released; h != nil && !l.quiet {
		h(l.held.Key, l.held.Token, time.Since(l.since))
	}
	return nil
}

// afterwards answers an Unlock that came too late.
func (l *Lock) afterwards() error {
	<-l.ctx.Done() // the call that ended the lock may not have said why yet
	cause := context.Cause(l.ctx)
	if !errors.Is(cause, ErrUnlocked) {
		return fmt.Errorf("%w: %q", cause, l.held.Key)
	}
	if l.wasLeaving() {
		return nil // UnlockTx did it
	}
	return fmt.Errorf("%w: %q was released already", ErrUnlocked, l.held.Key)
}

// lingers reports whether the key of a lock that is over is still locked although its holder is
// done: after MaxHold, waiters need not wait for the expiry, unless MinHold says so.
func (l *Lock) lingers() bool {
	return errors.Is(context.Cause(l.ctx), ErrMaxHold) && l.rest() <= 0
}

// inOwnTx reports whether the last transaction that fenced the lock is certainly open. It sends
// nothing: a *sql.Tx, and what embeds one, knows by itself whether Commit or Rollback was called.
// It refuses a statement of no pool, but only after it has found that it is not over.
func (l *Lock) inOwnTx() bool {
	l.mu.Lock()
	tx := l.tx
	l.tx = nil
	l.mu.Unlock()
	t, ok := tx.(interface {
		StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt
	})
	return ok && !errors.Is(t.StmtContext(context.Background(), new(sql.Stmt)).Close(), sql.ErrTxDone)
}
