package rowlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// Tx is a transaction of the caller's: *sql.Tx, *sqlx.Tx and *sql.Conn have it. dialect/postgres has the form for pgx.Tx.
type Tx = lease.Tx

// Lock is a key that is held. Its methods are safe for concurrent use. Do not copy it.
type Lock struct {
	c      *Client
	held   watchdog.Held
	ctx    context.Context
	cancel context.CancelCauseFunc
	since  time.Time
	least  time.Duration // how long after since MinHold keeps the key locked; a time would make every lock 32 bytes larger
	quiet  bool          // the client's own: no hooks

	mu       sync.Mutex
	tx       Tx   // that it was last fenced in, if any
	over     bool // Unlock, loss or Close came
	doubtful bool // a copy of the acquire may still be under way at the server
}

func newLock(ctx context.Context, c *Client, req lease.AcquireRequest, a lease.Acquired, r request, sent time.Time) *Lock {
	l := &Lock{c: c, since: sent, quiet: r.internal, doubtful: a.Doubtful}
	if r.minHold > 0 { // from the answer on, not from when it was sent: the grant may have come just before it
		l.least = max(r.minHold, r.minHold+time.Since(sent)) // which may overflow
	}
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx) // the lock must not die with the request that happened to get it
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.held = watchdog.Held{
		Lease: lease.Lease{Key: req.Key, Owner: req.Owner, Token: a.Token},
		TTL:   r.ttl, Margin: r.margin, Every: r.every, End: l.ended,
	}
	if r.maxHold > 0 {
		l.held.Until = sent.Add(r.maxHold)
	}
	return l
}

// Key is what is locked.
func (l *Lock) Key() string { return l.held.Key }

// Token is the fencing token: larger than every token granted for this key before, for ever. Where data is in another
// database than the lock, store it with the data and refuse a write that brings a smaller one.
func (l *Lock) Token() int64 { return l.held.Token }

// Context ends when the lock does. context.Cause of it is then ErrUnlocked, ErrLost or ErrMaxHold. It carries the values of
// the context given to Lock, but not its cancellation or deadline.
func (l *Lock) Context() context.Context { return l.ctx }

// Deadline is until when the lock can be trusted if no renewal succeeds any more: TTL less the margin after the last
// successful request was sent, on this process's monotonic clock. Behind a fence it is a margin before the expiry that the last
// renewal found committed.
func (l *Lock) Deadline() time.Time { return l.c.dog.Deadline(&l.held) }

// Fence makes sure, inside the caller's own transaction, that the lock is still held, and that nobody can take it until tx
// ends. Call it first in every transaction that writes what the lock protects, before any read. If it returns ErrFenced, which is
// then ErrLost (or ErrMaxHold) too, roll back: somebody else has, or had, the lock since, or the lease has run out.
//
// The check rests on no clock: a process that was stopped for an hour is refused as surely as one that was not. An expired lease
// passes if no other owner has had the key since.
//
// Fences of one lock take turns: a second transaction waits in Fence until the first has ended, or until ctx ends. Two open
// transactions of one goroutine therefore wait for each other: as long as the database lets them. Under REPEATABLE READ and
// SERIALIZABLE on PostgreSQL the one that waited gets ErrBusy: roll back and try again.
//
// Fence also extends the lease, within tx, unless it has expired or NoRenew was given: fenced transactions one after the other keep
// the lock. One transaction that is longer than the TTL keeps the lock to its end, and loses it then; the lock's context may end up
// to a margin after the next grant of the key, and the lock's next Fence is refused.
func (l *Lock) Fence(ctx context.Context, tx Tx) error {
	if err := lease.CheckTx(tx); err != nil {
		return fmt.Errorf("Fence of %q: %w", l.held.Key, err)
	}
	err := l.FenceIn(ctx, lease.InTx(tx))
	if err == nil {
		l.fencedBy(tx)
	}
	return err
}

// FenceIn is Fence for a transaction of another kind than database/sql's; see dialect/postgres.
func (l *Lock) FenceIn(ctx context.Context, tx lease.Runner) error {
	fencer, ok := seam.As[lease.Fencer](l.c.store)
	if !ok {
		return fmt.Errorf("%w: Fence of %q: the lock is not in your database; compare Token with one stored beside the data", lease.ErrUnsupported, l.held.Key)
	}
	if err := l.refuses(tx); err != nil {
		return err
	}
	err := l.fence(ctx, fencer, tx)
	if err == nil {
		l.c.dog.Fenced(&l.held)
	}
	return l.verdict(err)
}

// fence also renews, unless the lock is one that is never renewed.
func (l *Lock) fence(ctx context.Context, fencer lease.Fencer, tx lease.Runner) error {
	if renewer, ok := fencer.(lease.RenewingFencer); ok && l.held.Every > 0 {
		return renewer.FenceRenew(ctx, tx, lease.RenewRequest{Lease: l.held.Lease, TTL: l.held.TTL})
	}
	return fencer.Fence(ctx, tx, l.held.Lease)
}

// verdict ends the lock when the row itself has said that it is lost.
func (l *Lock) verdict(err error) error {
	if !errors.Is(err, ErrFenced) || l.wasLeaving() {
		return err
	}
	l.c.dog.Drop(&l.held)
	l.ended(ErrLost)
	return fmt.Errorf("%w (%w)", err, ErrLost)
}

// UnlockTx gives the lock back within the caller's own transaction: it is free exactly when tx commits, and still held if tx
// rolls back. It checks what Fence checks. Call Unlock afterwards all the same, as defer does: it ends the lock's context.
func (l *Lock) UnlockTx(ctx context.Context, tx Tx) error {
	if err := lease.CheckTx(tx); err != nil {
		return fmt.Errorf("UnlockTx of %q: %w", l.held.Key, err)
	}
	err := l.UnlockIn(ctx, lease.InTx(tx))
	if err == nil {
		l.fencedBy(tx)
	}
	return err
}

// UnlockIn is UnlockTx for a transaction of another kind than database/sql's; see dialect/postgres.
func (l *Lock) UnlockIn(ctx context.Context, tx lease.Runner) error {
	releaser, ok := seam.As[lease.TxReleaser](l.c.store)
	if !ok {
		return fmt.Errorf("%w: UnlockTx of %q: the lock is not in your database; Unlock after the commit", lease.ErrUnsupported, l.held.Key)
	}
	if err := l.refuses(tx); err != nil {
		return err
	}
	if rest := l.rest(); rest > 0 {
		return fmt.Errorf("%w: UnlockTx of %q would free it %s before MinHold is over; use Unlock", lease.ErrConfig, l.held.Key, rest.Round(time.Millisecond))
	}
	err := releaser.ReleaseTx(ctx, tx, l.held.Lease)
	if err == nil {
		l.c.dog.Leaving(&l.held)
	}
	return l.verdict(err)
}

// refuses is why this lock and tx have no business with each other.
func (l *Lock) refuses(tx lease.Runner) error {
	if isnil.Value(tx) {
		return fmt.Errorf("%w: the transaction for %q is nil; begin one", lease.ErrConfig, l.held.Key)
	}
	return l.refused()
}

// refused is why a lock that is over takes part in no transaction: loss is final, even if the row would still let it pass.
func (l *Lock) refused() error {
	switch cause := context.Cause(l.ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, ErrUnlocked):
		return fmt.Errorf("%w: %q was given back", ErrUnlocked, l.held.Key)
	default:
		return fmt.Errorf("%w: %q is no longer held with token %d: %w; roll back", ErrFenced, l.held.Key, l.held.Token, cause)
	}
}

// finish ends the lock on our side: no renewal is sent after it. It reports false if the lock was over already.
func (l *Lock) finish(cause error) bool {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return false
	}
	l.over = true
	l.mu.Unlock()
	l.c.dog.Drop(&l.held)
	l.c.remove(l)
	l.cancel(cause)
	return true
}

// ended is called by the watchdog when the lease is over.
func (l *Lock) ended(cause error) {
	if !l.finish(cause) {
		return
	}
	l.c.call(l.held.Key) // the row may be free, or about to be
	if !errors.Is(cause, ErrUnlocked) {
		l.report(cause)
	}
}

// report tells of an end that the holder did not want.
func (l *Lock) report(cause error) {
	if l.quiet {
		return
	}
	l.c.cfg.Logger.LogAttrs(l.ctx, slog.LevelWarn, "rowlock: lock ended", slog.String("key", l.held.Key),
		slog.Int64("token", l.held.Token), slog.Any("cause", cause))
	if h := l.c.cfg.Hooks.Lost; h != nil {
		h(l.held.Key, l.held.Token, cause)
	}
}
