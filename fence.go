package rowlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Fence makes sure, inside the caller's own transaction, that the lock is still held, and that no
// other owner can take it until tx ends. Call it first in every transaction that writes what the
// lock protects, before any read. If it returns ErrFenced, which is then ErrLost (or ErrMaxHold)
// too, roll back: another owner has, or had, the lock since, or the lease has run out.
//
// The check depends on no clock: a process that was stopped for an hour is refused as surely as one
// that was not. An expired lease passes if no other owner has had the key since.
//
// Fences of one lock take turns: a second transaction waits in Fence until the first has ended, or
// until ctx ends. Two open transactions of one goroutine therefore wait for each other, as long as
// the database lets them. Under REPEATABLE READ and SERIALIZABLE on PostgreSQL the one that waited
// gets ErrBusy: roll back and try again.
//
// Fence also extends the lease, within tx, unless it has expired or NoRenew was given: fenced
// transactions one after the other keep the lock. One transaction that is longer than the TTL keeps
// the lock to its end, and loses it then. The lock's context may then end up to a margin after the
// next grant of the key, and the lock's next Fence is refused.
func (l *Lock) Fence(ctx context.Context, tx Tx) error {
	return l.inTx("Fence", tx, func(run lease.Runner) error { return l.FenceIn(ctx, run) })
}

// FenceIn is Fence for a transaction of another kind than database/sql's; see dialect/postgres.
func (l *Lock) FenceIn(ctx context.Context, tx lease.Runner) error {
	if err := l.refuses(tx); err != nil {
		return err
	}
	renew := l.held.Every > 0 // NoRenew means that the lease is never extended
	err := l.k.store.Fence(ctx, tx, lease.RenewRequest{Lease: l.held.Lease, TTL: l.held.TTL}, renew)
	if err == nil {
		l.k.dog.Fenced(&l.held)
	}
	return l.verdict(err)
}

// UnlockTx releases the lock within the caller's own transaction: it is free exactly when tx
// commits, and still held if tx rolls back. It checks what Fence checks. Call Unlock afterwards all
// the same, as defer does: it ends the lock's context.
func (l *Lock) UnlockTx(ctx context.Context, tx Tx) error {
	return l.inTx("UnlockTx", tx, func(run lease.Runner) error { return l.UnlockIn(ctx, run) })
}

// UnlockIn is UnlockTx for a transaction of another kind than database/sql's; see dialect/postgres.
func (l *Lock) UnlockIn(ctx context.Context, tx lease.Runner) error {
	if err := l.refuses(tx); err != nil {
		return err
	}
	if rest := l.rest(); rest > 0 {
		return fmt.Errorf("%w: UnlockTx of %q would free it %s before MinHold is over; use Unlock",
			lease.ErrConfig, l.held.Key, rest.Round(time.Millisecond))
	}
	err := l.k.store.ReleaseTx(ctx, tx, l.held.Lease)
	if err == nil {
		l.k.dog.Leaving(&l.held)
	}
	return l.verdict(err)
}

// inTx runs f in tx, and remembers tx if f succeeds: Unlock cannot succeed inside it.
func (l *Lock) inTx(what string, tx Tx, f func(lease.Runner) error) error {
	if err := lease.CheckTx(tx); err != nil {
		return fmt.Errorf("%s of %q: %w", what, l.held.Key, err)
	}
	if err := f(lease.InTx(tx)); err != nil {
		return err
	}
	l.mu.Lock()
	l.tx = tx
	l.mu.Unlock()
	return nil
}

// verdict ends the lock when the row itself has said that it is lost.
func (l *Lock) verdict(err error) error {
	if !errors.Is(err, ErrFenced) || l.wasLeaving() {
		return err
	}
	l.k.dog.Drop(&l.held)
	l.ended(ErrLost)
	return fmt.Errorf("%w (%w)", err, ErrLost)
}

// refuses is why this lock and tx have no business with each other. A lock that is over takes part
// in no transaction: loss is final, even if the row would still let it pass.
func (l *Lock) refuses(tx lease.Runner) error {
	if isnil.Value(tx) {
		return fmt.Errorf("%w: the transaction for %q is nil; begin one", lease.ErrConfig, l.held.Key)
	}
	switch cause := context.Cause(l.ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, ErrUnlocked):
		return fmt.Errorf("%w: %q was released", ErrUnlocked, l.held.Key)
	default:
		return fmt.Errorf("%w: %q is no longer held with token %d: %w; roll back",
			ErrFenced, l.held.Key, l.held.Token, cause)
	}
}
