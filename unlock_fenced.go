package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

const (
	// probeTimeout bounds how long Unlock asks whether a row is locked, beside what it waits for the release itself.
	probeTimeout = 250 * time.Millisecond
	// probeTTL is short: if the release fails after it, the key is free soon.
	probeTTL = time.Second
)

// undone is a transaction that knows by itself, without asking the database, whether Commit or Rollback was called: *sql.Tx, and
// what embeds one.
type undone interface {
	StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt
}

// isOpen reports whether tx is certainly open still. It sends nothing: a statement of no pool is refused here, but only after the
// transaction has found that it is not over.
func isOpen(tx Tx) bool {
	t, ok := tx.(undone)
	return ok && !errors.Is(t.StmtContext(context.Background(), new(sql.Stmt)).Close(), sql.ErrTxDone)
}

// fencedBy remembers the transaction that the lock was last fenced in.
func (l *Lock) fencedBy(tx Tx) {
	l.mu.Lock()
	l.tx = tx
	l.mu.Unlock()
}

// inOwnTx reports whether the last transaction that fenced the lock is certainly open.
func (l *Lock) inOwnTx() bool {
	l.mu.Lock()
	tx := l.tx
	l.tx = nil
	l.mu.Unlock()
	return tx != nil && isOpen(tx)
}

// stuck returns, for each lock that cannot be unlocked because its own open transaction has the row, the error that says so. The rows
// are asked as well: a transaction that has rolled back to a savepoint has unlocked them.
func (c *Client) stuck(ctx context.Context, locks ...*Lock) []error {
	return c.whereLocked(ctx, locks, (*Lock).inOwnTx, func(l *Lock, _ int) error { return l.stuckError(nil) })
}

// explain adds to the errors of releases that failed what is in their way, if that is a fence of the lock's own.
func (c *Client) explain(ctx context.Context, locks []*Lock, errs []error) []error {
	fenced := func(l *Lock) bool { return c.dog.MayBeFenced(&l.held) }
	for i, err := range c.whereLocked(ctx, failed(locks, errs), fenced, func(l *Lock, i int) error { return l.stuckError(errs[i]) }) {
		if err != nil {
			errs[i] = err
		}
	}
	return errs
}

// failed leaves nil for a lock whose release did not fail.
func failed(locks []*Lock, errs []error) []*Lock {
	out := make([]*Lock, len(locks))
	for i, l := range locks {
		if errs[i] != nil {
			out[i] = l
		}
	}
	return out
}

func (l *Lock) stuckError(err error) error {
	const text = "its row is locked by a transaction that has fenced this lock and has not ended: end it before Unlock, or use UnlockTx"
	if err == nil {
		return fmt.Errorf("%w: unlock %q: %s", ErrUnknown, l.held.Key, text)
	}
	return fmt.Errorf("%w: unlock %q: it seems that %s (%w)", ErrUnknown, l.held.Key, text, err)
}

// whereLocked calls f for each lock that is suspect and whose row another transaction has locked, in one call to the store. A renewal
// tells, because it waits for no row; a lease that it does renew is about to be released.
func (c *Client) whereLocked(ctx context.Context, locks []*Lock, suspect func(*Lock) bool, f func(l *Lock, i int) error) []error {
	errs := make([]error, len(locks))
	var at []int
	var reqs []lease.RenewRequest
	for i, l := range locks {
		if l != nil && suspect(l) {
			at, reqs = append(at, i), append(reqs, lease.RenewRequest{Lease: l.held.Lease, TTL: probeTTL})
		}
	}
	if len(reqs) == 0 {
		return errs
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	answers, err := c.store.Renew(ctx, reqs)
	for n, i := range at {
		if err == nil && len(answers) == len(at) && answers[n].Err == nil && answers[n].Outcome == lease.Busy {
			errs[i] = f(locks[i], i)
		}
	}
	return errs
}
