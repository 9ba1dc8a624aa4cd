package rowlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/internal/handback"
	"github.com/rowlockdb/rowlock/internal/inflight"
	"github.com/rowlockdb/rowlock/internal/orphan"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// Tx is a transaction of the caller's: *sql.Tx, *sqlx.Tx and *sql.Conn have it. dialect/postgres
// has the form for pgx.Tx.
type Tx = lease.Tx

// Lock is a key that is held. Its methods are safe for concurrent use. Do not copy it.
type Lock struct {
	k      *keeper
	held   watchdog.Held
	ctx    context.Context
	cancel context.CancelCauseFunc
	since  time.Time
	least  time.Duration // MinHold, counted from since; a time would make every lock 32 bytes larger
	quiet  bool          // the client's own: no hooks

	mu       sync.Mutex
	tx       Tx   // that last fenced the lock, if any
	over     bool // by Unlock, loss or Close
	doubtful bool // a copy of the granting request may still be under way at the server
}

// keeper is what locks need of their client: where they are kept alive, and where they are given
// up.
type keeper struct {
	cfg     Config
	store   *seam.Store
	dog     *watchdog.Watchdog
	calls   *inflight.Calls
	orphans *orphan.Cleaner
	queue   interface {
		acquire.Queue
		handback.Queue
		Granted(key string, token int64, sent time.Time)
		Wake(key string) // "" is every key
		Stop()
	}
	returns handback.Releaser

	mu     sync.Mutex
	locks  map[*Lock]struct{}
	closed chan struct{} // closed by Close; ends every wait
}

// newLock makes a lock of grant i.
func newLock(ctx context.Context, k *keeper, g acquire.Grants, i int, r *request) *Lock {
	l := &Lock{k: k, since: g.Sent, quiet: r.Want.Quiet, doubtful: g.Answers[i].Doubtful}
	if r.minHold > 0 {
		// It counts from the answer, not from the request, because the grant may have come just
		// before the answer. The sum may overflow.
		l.least = max(r.minHold, r.minHold+time.Since(g.Sent))
	}
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx) // the lock must not end with the call that happened to get it
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.held = watchdog.Held{
		Lease: g.Lease(i), TTL: r.Want.TTL, Margin: r.margin, Every: r.every, End: l.ended,
	}
	if r.maxHold > 0 {
		l.held.Until = g.Sent.Add(r.maxHold)
	}
	return l
}

// Key is what is locked.
func (l *Lock) Key() string { return l.held.Key }

// Token is the fencing token: larger than every token granted for this key before, for ever. Where
// data is in another database than the lock, store it with the data and refuse a write with a
// smaller one.
func (l *Lock) Token() int64 { return l.held.Token }

// Context ends when the lock does. context.Cause of it is then ErrUnlocked, ErrLost or ErrMaxHold.
// It carries the values of the context given to Lock, but not its cancellation or deadline.
func (l *Lock) Context() context.Context { return l.ctx }

// Deadline is until when the lock can be trusted if no renewal succeeds any more: TTL less the
// margin after the last successful request was sent, on this process's monotonic clock. Behind a
// fence it is a margin before the expiry that the last renewal found committed.
func (l *Lock) Deadline() time.Time { return l.k.dog.Deadline(&l.held) }

// rest is how long the key must still stay locked because of MinHold.
func (l *Lock) rest() time.Duration { return l.least - time.Since(l.since) }

// wasLeaving reports whether a transaction of the caller's may have released the lock.
func (l *Lock) wasLeaving() bool {
	_, left := l.k.dog.InTx(&l.held)
	return left
}

// finish ends the lock on our side: no renewal is sent after it. It reports false if the lock was
// over already.
func (l *Lock) finish(cause error) bool {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return false
	}
	l.over = true
	l.mu.Unlock()
	l.k.dog.Drop(&l.held)
	l.k.remove(l)
	l.cancel(cause)
	return true
}

// ended is called by the watchdog when the lease is over.
func (l *Lock) ended(cause error) {
	if !l.finish(cause) {
		return
	}
	l.k.queue.Wake(l.held.Key) // the row may be free, or about to be
	if !errors.Is(cause, ErrUnlocked) {
		l.report(cause)
	}
}

// report tells of an end that the holder did not want.
func (l *Lock) report(cause error) {
	if l.quiet {
		return
	}
	l.k.cfg.Logger.LogAttrs(l.ctx, slog.LevelWarn, "rowlock: lock ended",
		slog.String("key", l.held.Key), slog.Int64("token", l.held.Token), slog.Any("cause", cause))
	if h := l.k.cfg.Hooks.Lost; h != nil {
		h(l.held.Key, l.held.Token, cause)
	}
}

// watch registers a lock that was just granted and keeps it alive, unless the client was closed
// meanwhile or the lease cannot be trusted any more: the watchdog says why.
func (k *keeper) watch(l *Lock, sent time.Time) error {
	k.mu.Lock()
	if k.isClosed() {
		k.mu.Unlock()
		return fmt.Errorf("%w: lock %q", lease.ErrClosed, l.held.Key)
	}
	k.locks[l] = struct{}{}
	k.mu.Unlock()
	return k.dog.Keep(&l.held, sent)
}

func (k *keeper) remove(l *Lock) {
	k.mu.Lock()
	delete(k.locks, l)
	k.mu.Unlock()
}

func (k *keeper) isClosed() bool {
	select {
	case <-k.closed:
		return true
	default:
		return false
	}
}

// shut ends every wait and returns the locks that are held. It reports false if that was done
// before.
func (k *keeper) shut() (held []*Lock, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isClosed() {
		return nil, false
	}
	close(k.closed)
	for l := range k.locks {
		held = append(held, l)
	}
	return held, true
}
