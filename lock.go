package rowlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Tx is a transaction of the caller's: *sql.Tx, *sqlx.Tx and *sql.Conn have it. dialect/postgres
// has the form for pgx.Tx.
type Tx = lease.Tx

// Lock is a key that is held. Its methods are safe for concurrent use. Do not copy it.
//
// A Lock that becomes unreachable without Unlock is released after the next garbage collection, and
// logged: see Hooks.Leaked. Do not rely on it: a collection may be minutes away. A Lock never
// becomes unreachable if a value of the ctx that was given to Lock refers to it, because the client
// keeps that ctx while the lock is held.
type Lock struct {
	h      *hold
	nested *nested // of a Reentrant call; nil for the call that was granted the lease
	closed bool    // by Unlock; guarded by the hold's mutex
}

// newLock returns a handle of h, which counts it already. The idle time counts from the first:
// before its call returns, no holder can show progress.
func newLock(h *hold, n *nested) *Lock {
	if n == nil && h.maxIdle > 0 {
		h.k.dog.MaxIdle(&h.lease, h.maxIdle)
	}
	l := &Lock{h: h, nested: n}
	runtime.SetFinalizer(l, (*Lock).leak)
	return l
}

// Key is what is locked, by the name that was given: that of a Namespace is without the namespace.
func (l *Lock) Key() string {
	if l.nested != nil {
		return l.nested.key
	}
	return l.h.space.Own(l.h.lease.Key)
}

// Token is the fencing token: larger than every token granted for this key before, for ever. Where
// data is in another database than the lock, or in an object store, package tokenfence keeps it
// beside the data and refuses a write with a smaller one.
func (l *Lock) Token() Token { return l.h.lease.Token }

// Context ends when the lock does. context.Cause of it is then ErrUnlocked, ErrLost, ErrMaxHold or
// ErrIdle. It carries the values of the context given to Lock, but not its cancellation or
// deadline. It also carries the lock: a call with this context that locks the key again is refused
// with ErrDeadlock.
//
// The context of a Reentrant call's handle carries the values of the context given to that call. Of
// several handles of one lock, each context ends with its handle's own Unlock, and all of them end
// with the lock that the handles share.
func (l *Lock) Context() context.Context {
	if l.nested != nil {
		return l.nested.ctx
	}
	return &l.h.ctx
}

type handleKey struct{}

// Within returns a copy of ctx that ends with the lock too, with its cause, and that carries it to
// work that is given a ctx and no Lock: see FromContext. Call cancel when the work is done.
func (l *Lock) Within(ctx context.Context) (within context.Context, cancel context.CancelFunc) {
	ctx = &chain{Context: context.WithValue(ctx, handleKey{}, l), held: l.h, up: chainOf(ctx)}
	within, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.Context(), func() { end(context.Cause(l.Context())) })
	return within, func() { stop(); end(nil) }
}

// FromContext returns the lock that ctx carries: the ctx of Do and Within, and what is made of it.
// It reports false if another lock was taken on the way, whose ctx carries no Lock, as that of a
// Locks or of Lock.Context: work under that one must not fence the outer one instead.
func FromContext(ctx context.Context) (*Lock, bool) {
	l, _ := ctx.Value(handleKey{}).(*Lock)
	if l == nil || chainOf(ctx).held != l.h {
		return nil, false
	}
	return l, true
}

// Deadline is until when the lock can be trusted if no renewal succeeds any more: TTL less the
// margin after the last successful request was sent, on this process's monotonic clock. Behind a
// fence it is a margin before the expiry that the last renewal found committed.
func (l *Lock) Deadline() time.Time { return l.h.k.dog.Deadline(&l.h.lease) }

// Progress says that the holder works. A lock with MaxIdle ends unless Progress is called often
// enough, on whichever handle and goroutine. Fence does not count. Progress sends nothing and takes
// some 50 ns, so that a loop may call it for each item.
//
// Its error is nil while the lock is held, with or without MaxIdle. Afterwards it is the cause of
// the lock's end, so that a loop that checks it stops; the call changes nothing then. nil promises
// no more than Context does: data is protected by Fence.
func (l *Lock) Progress() error {
	if l.Context().Err() == nil && l.h.progress() && l.Context().Err() == nil {
		return nil
	}
	// Without a cause, another goroutine is about to end it.
	cause := cmp.Or(l.h.why(), context.Cause(l.Context()), ErrIdle)
	return fmt.Errorf("%w: %q", cause, l.h.lease.Key)
}

// Fence makes sure, inside the caller's own transaction, that the lock is still held, and that no
// other owner can take it until tx ends. Call it first in every transaction that writes what the
// lock protects, before any read. If it returns ErrFenced, which is then ErrLost (or ErrMaxHold, or
// ErrIdle) too, roll back: another owner has, or had, the lock since, or the lease has run out.
//
// The check depends on no clock: a process that was stopped for an hour is refused as surely as one
// that was not. An expired lease passes if no other owner has had the key since.
//
// Fences of one lock take turns: a second transaction waits in Fence until the first has ended, or
// until ctx ends. Two open transactions of one goroutine therefore wait for each other, as long as
// the database lets them. Under REPEATABLE READ and SERIALIZABLE on PostgreSQL the one that waited
// gets ErrBusy: roll back and try again.
//
// Fence before the first savepoint, such as a nested transaction of gorm or pgx, because ROLLBACK
// TO it can unlock the key while tx goes on. PostgreSQL sees that, and Fence is refused with
// ErrConfig in a savepoint, unless tx has fenced the lock before. See docs/fencing.md for other
// databases.
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
	renew := l.h.lease.Every > 0 // NoRenew means that the lease is never extended
	var sent time.Time
	err := l.asItIs(ctx, "Fence", tx, func(as lease.Lease) error {
		sent = time.Now()
		return l.h.k.store.Fence(ctx, tx,
			lease.RenewRequest{Lease: as, TTL: l.h.lease.TTL, Left: time.Until(l.Deadline())}, renew)
	})
	if err == nil {
		l.h.k.dog.Fenced(&l.h.lease, sent)
	}
	return err
}

// UnlockTx releases the lock within the caller's own transaction: it is free exactly when tx
// commits, and still held if tx rolls back. It checks what Fence checks. Call Unlock afterwards all
// the same, as defer does: it ends the lock's context.
//
// A lock that an operator takes away after tx has rolled back is lost as any other, if the records
// of forced releases can be read. One gap remains until the next renewal or Fence after the
// rollback, and with NoRenew until the next Fence: if the lease runs out while the process is
// stopped, and another owner takes the key, the lock ends as if tx had committed.
func (l *Lock) UnlockTx(ctx context.Context, tx Tx) error {
	return l.inTx("UnlockTx", tx, func(run lease.Runner) error { return l.UnlockIn(ctx, run) })
}

// UnlockIn is UnlockTx for a transaction of another kind than database/sql's; see dialect/postgres.
func (l *Lock) UnlockIn(ctx context.Context, tx lease.Runner) error {
	if err := l.refuses(ctx, "UnlockTx", tx); err != nil {
		return err
	}
	if rest := l.h.rest(); rest > 0 {
		return fmt.Errorf("%w: UnlockTx of %q would free it %s before MinHold is over: "+
			"use Unlock, or UnlockNow after the commit",
			lease.ErrConfig, l.h.lease.Key, rest.Round(time.Millisecond))
	}
	return l.leaveIn(ctx, tx, l.h.k.store.ReleaseTx)
}

// leaveIn has leave change the row so that it no longer names the lock once tx is committed.
func (l *Lock) leaveIn(
	ctx context.Context, tx lease.Runner, leave func(context.Context, lease.Runner, lease.Lease) error,
) error {
	err := l.asItIs(ctx, "UnlockTx", tx, func(as lease.Lease) error { return leave(ctx, tx, as) })
	if err == nil {
		l.h.k.dog.Leaving(&l.h.lease)
	}
	return err
}

// afterwards is the error of a call on a handle that has ended, or is about to.
func (l *Lock) afterwards() error {
	<-l.Context().Done()
	return cmp.Or(l.h.afterwards(), error(ErrUnlocked))
}

// inTx runs f in tx, and remembers tx if f succeeds: Unlock cannot succeed inside it.
func (l *Lock) inTx(what string, tx Tx, f func(lease.Runner) error) error {
	if err := lease.CheckTx(tx); err != nil {
		return fmt.Errorf("%s of %q: %w", what, l.h.lease.Key, err)
	}
	run := lease.InTx(tx)
	if on := l.h.k.tx.Transactor; on != nil {
		run = on.InTx(tx)
	}
	if err := f(run); err != nil {
		return err
	}
	l.h.fencedBy(tx)
	return nil
}

// fencedBy remembers in which transaction Unlock cannot succeed.
func (h *hold) fencedBy(tx Tx) {
	h.mu.Lock()
	h.tx = tx
	h.mu.Unlock()
}

// asItIs runs f, which asks for the lease in tx. It waits while a Downgrade is under way. If one
// has come between, f has asked for a lease that was no more, and asks again.
func (l *Lock) asItIs(
	ctx context.Context, what string, tx lease.Runner, f func(as lease.Lease) error,
) error {
	for {
		if err := l.refuses(ctx, what, tx); err != nil {
			return err
		}
		if err := l.h.lockAnswered(ctx); err != nil {
			return err
		}
		as := l.h.lease.Lease
		l.h.mu.Unlock()
		err := f(as)
		if !errors.Is(err, ErrFenced) || !l.h.changes(as) {
			return l.verdict(err)
		}
	}
}

// verdict ends the lock when the row itself has said that it is lost.
func (l *Lock) verdict(err error) error {
	if !errors.Is(err, ErrFenced) || l.h.wasLeaving() {
		return err
	}
	l.h.k.dog.Drop(&l.h.lease)
	l.h.End(ErrLost)
	return fmt.Errorf("%w (%w)", err, ErrLost)
}

// refuses is why this lock and tx have no business with each other. A lock that is over takes part
// in no transaction: loss is final, even if the row would still let it pass.
func (l *Lock) refuses(ctx context.Context, what string, tx lease.Runner) error {
	if err := isnil.Context(what, ctx); err != nil {
		return err
	}
	if isnil.Value(tx) {
		return fmt.Errorf("%w: the transaction for %q is nil; begin one", lease.ErrConfig, l.h.lease.Key)
	}
	return l.over()
}

// over is why no transaction may begin under the lock any more.
func (l *Lock) over() error {
	switch cause := context.Cause(l.Context()); {
	case cause == nil:
		return nil
	case errors.Is(cause, ErrUnlocked):
		return fmt.Errorf("%w: %q was released", ErrUnlocked, l.h.lease.Key)
	default:
		return fmt.Errorf("%w: %q is no longer held with token %d: %w; roll back",
			ErrFenced, l.h.lease.Key, l.h.lease.Token, cause)
	}
}

// Downgrade lets readers in: the lock becomes one that RLock might have given, with the same token
// and context, and no writer comes between. It returns nil if the lock is shared already.
//
// Its error is that of the lock's end if it is over, ErrConfig if Reentrant calls hold it too,
// because they count on holding it alone, and ErrUnsupported if the store's keys cannot be shared.
// After ErrBusy, as inside a transaction of its own that has fenced the lock, nothing has changed.
// After ErrUnknown the lock is lost.
//
// The lock goes on to end as ever while the call is under way: at its deadline, by MaxHold, by
// Unlock or by Close, which also end the call. Fence, UnlockTx and Reentrant calls wait for it.
func (l *Lock) Downgrade(ctx context.Context) error {
	if err := cmp.Or(isnil.Context("Downgrade", ctx), l.h.k.store.Shares()); err != nil {
		return err
	}
	if !l.h.k.calls.Enter() { // Close waits for this call, or has ended the lock
		return l.afterwards()
	}
	defer l.h.k.calls.Leave()
	due, err := l.beginDowngrade(ctx)
	if err != nil || !due {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, l.Deadline())
	defer cancel()
	defer context.AfterFunc(l.Context(), cancel)()
	req := lease.RenewRequest{Lease: l.h.id(), TTL: l.h.lease.TTL}
	sent := time.Now()
	answer := l.h.k.store.Downgrade(ctx, []lease.RenewRequest{req})[0]
	return l.h.downgraded(answer, sent)
}

// beginDowngrade has the watchdog renew the lock no more, but watch it, until downgraded is called.
// It reports false if the lock is shared already.
func (l *Lock) beginDowngrade(ctx context.Context) (due bool, err error) {
	h := l.h
	if err := h.lockAnswered(ctx); err != nil {
		return false, err
	}
	var over bool
	switch {
	case l.closed || h.phase != live:
		over = true
	case h.lease.Shared:
	case h.handles > 1:
		err = fmt.Errorf("%w: Downgrade of %q: %d handles of Reentrant calls hold it; unlock the others first",
			lease.ErrConfig, h.lease.Key, h.handles)
	case !h.k.dog.Pause(&h.lease):
		over = true // the watchdog ends it at this very moment
	default:
		due = true
		h.step(onDowngrade)
		h.answered = make(chan struct{})
	}
	h.mu.Unlock()
	if over {
		err = l.afterwards()
	}
	return due, err
}

// downgraded notes what became of a Downgrade, and returns its error. The lock may have ended
// meanwhile: then its lease is given away as what it is now. If that was done before, without
// knowing, the orphan cleaner releases what there may be.
func (h *hold) downgraded(a lease.Renewed, sent time.Time) error {
	e, err := onAsBefore, a.Err
	switch {
	case errors.Is(err, lease.ErrUnknown):
		e = onUnknown
	case err == nil && a.Outcome == lease.Extended:
		e = onShared
	case err == nil:
		err = fmt.Errorf("%w: %q, with token %d", ErrLost, h.lease.Key, h.lease.Token)
	}
	h.mu.Lock()
	close(h.answered) // what waits for it needs the mutex, too
	h.answered = nil
	was, ends, to := h.phase, false, nowhere
	if was == downgrading && e == onUnknown {
		ends = h.endWith(ErrLost, e)
	} else {
		to = h.step(e)
	}
	switch {
	case was != downgrading && e == onShared:
		h.k.dog.Share(&h.lease)
	case was != downgrading, e == onUnknown:
	default:
		if e == onShared || a.Err != nil {
			err = cmp.Or(h.k.dog.Resume(&h.lease, e == onShared, sent), a.Err)
		}
		if errors.Is(err, ErrLost) || errors.Is(err, ErrMaxHold) || errors.Is(err, ErrIdle) {
			ends = h.endWith(err, onEnd)
		}
	}
	l, cause := h.lease.Lease, h.cause
	unclaimed := h.phase == unclear && !errors.Is(cause, ErrUnlocked) // else Unlock or Close claims it
	h.mu.Unlock()
	if to == toCleaner {
		l.Shared = true // or not
		h.k.orphans.AddLeases(l)
	}
	if ends {
		h.wasLost(cause)
	}
	if unclaimed {
		h.k.release(h.k.returns.Within(context.Background()), nil, partings([]*hold{h}), true)
	}
	if was != downgrading {
		return cmp.Or(h.afterwards(), error(ErrUnlocked))
	}
	return err
}
