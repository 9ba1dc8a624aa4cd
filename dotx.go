package rowlock

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/lease"
)

// DoTx locks key and runs f in a transaction that has fenced the lock: everything that f writes
// with tx is committed while no other owner has the key, or not at all. The transaction is of the
// pool that Open got. It also releases the lock, so that the key is free exactly when what f wrote
// is there; or it hands the key to the next caller of this client.
//
//	err := locks.DoTx(ctx, "account/7", func(ctx context.Context, tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, `UPDATE account SET balance = balance - 5 WHERE id = 7`)
//		return err
//	})
//
// f must not end tx, and must return the errors of its statements. Its ctx ends with ctx or with
// the lock. f's error is returned, or its panic goes on, after everything was rolled back. nil
// means that the COMMIT was acknowledged. What f has finished is committed, even if ctx has ended.
//
// f may run twice: if the database has ended the transaction to let another one pass (deadlock,
// serialization failure, busy SQLite file) or was restored, and nothing was committed, DoTx rolls
// back and runs f again, five times in all. After a COMMIT without an answer it returns ErrUnknown
// instead.
//
// Errors are otherwise those of Lock, and of Fence: ErrFenced if the lock was lost before COMMIT,
// or a protected table has refused what f wrote. Once a transaction has begun it is never ErrHeld.
//
// Options are those of Lock, with [TxOptions] and [Shared]. Reentrant is refused: a key that ctx
// holds already is ErrDeadlock, because the transaction would wait for its own fence. Do and
// [Lock.Fence] are for work that needs more than one transaction. After New there is no pool, and
// the error is ErrUnsupported: see [DoTxOn].
func (c *Client) DoTx(
	ctx context.Context, key string, f func(ctx context.Context, tx *sql.Tx) error, opts ...Option,
) error {
	return c.DoAllTx(ctx, []string{key}, f, opts...)
}

// DoAllTx is DoTx with the locks on all keys, as LockAll gets them.
func (c *Client) DoAllTx(
	ctx context.Context, keys []string, f func(ctx context.Context, tx *sql.Tx) error, opts ...Option,
) error {
	if err := c.tx.usable(); err != nil {
		return err
	}
	var tx *sql.Tx
	return c.DoTxIn(ctx, keys, c.tx.Begins(c.tx.pool, &tx), called(f, &tx), opts...)
}

// DoTx runs f as Client.DoTx does, in a transaction that has fenced the lock, and keeps the lock:
// for work in several transactions under one lock, as the batches of a long job.
//
//	err := locks.Do(ctx, "backfill", func(ctx context.Context, l *rowlock.Lock) error {
//		for done := false; !done; {
//			err := l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
//				done, err = nextBatch(ctx, tx)
//
// f may run twice, as there: what it tells its surroundings must come from its last run. Other
// transactions of the lock wait for f's. Call Unlock after it, not in f.
func (l *Lock) DoTx(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	return (&Locks{k: l.h.k, locks: []*Lock{l}, ctx: l.Context()}).DoTx(ctx, f)
}

// DoTx is that of a Lock, with all of them.
func (ls *Locks) DoTx(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	if f == nil {
		return errNoFunction(ls.Keys())
	}
	if err := cmp.Or(isnil.Context("DoTx", ctx), ls.k.tx.usable(), ls.over()); err != nil {
		return err
	}
	var tx *sql.Tx
	defer ls.fencedBy(nil) // also if f panics
	s := &section{locks: ls, terms: txTerms{keeps: true}}
	return s.run(ctx, ls.k.tx.Begins(ls.k.tx.pool, &tx), func(ctx context.Context) error {
		ls.fencedBy(tx)
		return f(ctx, tx)
	})
}

// over is why no transaction may begin under the locks any more.
func (ls *Locks) over() error { return ls.each((*Lock).over) }

// fencedBy is that of each lock.
func (ls *Locks) fencedBy(tx Tx) {
	for _, l := range ls.locks {
		l.h.fencedBy(tx)
	}
}

func errNoFunction(keys []string) error {
	return fmt.Errorf("%w: DoTx of %q: the function is nil", lease.ErrConfig, keys)
}

// Beginner begins a transaction of another library: T is what the caller works with, and the
// *sql.Tx the transaction underneath. DoTxOn ends it by that, so that T's own Commit must do no
// more. ctx is the transaction's: it does not end before the COMMIT does.
type Beginner[T any] func(ctx context.Context, opts *sql.TxOptions) (T, *sql.Tx, error)

// DoTxOn is Client.DoTx in a transaction of another library, as sqlx, gorm, bun or ent, or of a
// client that New has made; with several keys it is DoAllTx. The transaction must be of the
// database of the locks; another is refused with ErrForeignTx. Package dialect/postgres has the
// form for pgx.
//
//	begin := func(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, *sql.Tx, error) {
//		tx, err := db.BeginTxx(ctx, opts)
//		if err != nil {
//			return nil, nil, err
//		}
//		return tx, tx.Tx, nil
//	}
//	err := rowlock.DoTxOn(ctx, locks, begin, "account/7",
//		func(ctx context.Context, tx *sqlx.Tx) error {
func DoTxOn[T any, K string | []string](
	ctx context.Context, locks *Client, begin Beginner[T], keys K,
	f func(ctx context.Context, tx T) error, opts ...Option,
) error {
	if begin == nil {
		return fmt.Errorf("%w: DoTxOn: what begins transactions is nil", lease.ErrConfig)
	}
	var tx T
	on := func(ctx context.Context, opts *sql.TxOptions) (beneath *sql.Tx, err error) {
		tx, beneath, err = begin(ctx, opts)
		if err == nil && beneath == nil {
			err = fmt.Errorf("%w: DoTxOn: what begins transactions returned no *sql.Tx", lease.ErrConfig)
		}
		return beneath, err
	}
	var begins adapter.Begin
	if locks.tx.Transactor != nil { // DoTxIn says so
		begins = locks.tx.BeginsBy(on)
	}
	return locks.DoTxIn(ctx, adapter.KeysOf(keys), begins, called(f, &tx), opts...)
}

// called is f with the transaction that was begun last, or nil.
func called[T any](f func(context.Context, T) error, tx *T) func(context.Context) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context) error { return f(ctx, *tx) }
}

// section is one call of DoTx.
type section struct {
	terms txTerms
	locks *Locks

	committed bool        // and acknowledged
	next      *queue.InTx // gets the key by the COMMIT; nil: the transaction releases it
}

// txTerms are the options that only DoTx has.
type txTerms struct {
	sql   sql.TxOptions
	keeps bool // the locks outlive the transaction
}

// take is the last option of a section.
func (t *txTerms) take(r *request) error {
	if r.given&givenReentrant != 0 {
		return fmt.Errorf("%w: Reentrant: DoTx ends its lock with its transaction, and cannot share that of its ctx; "+
			"leave the option out", lease.ErrConfig)
	}
	t.sql, t.keeps, r.reentrant = r.tx, r.minHold > 0, false
	r.given &^= givenTxOptions | givenShared
	return nil
}

// DoTxIn is DoTx for a transaction of another kind than database/sql's; see dialect/postgres. begin
// is called for each attempt, and f with what it has begun.
func (c *Client) DoTxIn(
	ctx context.Context, keys []string,
	begin func(ctx context.Context, opts *sql.TxOptions) (lease.Transaction, error),
	f func(ctx context.Context) error, opts ...Option,
) (err error) {
	switch {
	case f == nil:
		return errNoFunction(keys)
	case c.tx.Transactor == nil:
		return fmt.Errorf("%w: DoTx of %q: the locks are not in a database; use Do, and compare Token with "+
			"one stored beside the data", lease.ErrUnsupported, keys)
	}
	s := new(section)
	s.locks, err = c.all(ctx, keys, append(opts[:len(opts):len(opts)], s.terms.take), true)
	if above := (*DeadlockError)(nil); errors.As(err, &above) && len(above.Cycle) == 0 {
		return fmt.Errorf("rowlock: DoTx of %q would wait for a fence of its own caller's: pass on the transaction or the lock "+
			"that the caller has, and call DoTx once (%w)", keys, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = s.unlock(ctx, err) }() // also after a panic
	return s.run(ctx, begin, f)
}

// run runs the section until it has succeeded, or failed for good. A statement that ends with the
// lock says "context canceled": the error has the reason, too.
func (s *section) run(ctx context.Context, begin adapter.Begin, f func(context.Context) error) error {
	within, cancel := s.locks.within(ctx)
	defer cancel(nil)
	err := s.locks.k.tx.Transact(within, &adapter.Section{
		Keys: s.locks.Keys(), Opts: s.terms.sql, Begin: begin, Call: f,
		Unmarked: s.terms.keeps || s.locks.locks[0].h.lease.Shared,
		Fence:    s.locks.FenceIn, Leave: s.leave, Ended: s.ended, Strayed: s.strayed,
	})
	if err == nil || errors.Is(err, ErrUnknown) || errors.Is(err, ErrFenced) {
		return err
	}
	return oneline.Join(err, s.locks.over())
}

// unlock ends the locks of a section that has ended with err.
func (s *section) unlock(ctx context.Context, err error) error {
	if s.committed && !s.terms.keeps {
		for _, l := range s.locks.locks {
			l.h.mu.Lock()
			l.h.freed = true
			l.h.mu.Unlock()
		}
	}
	unlock := s.locks.Unlock(ctx)
	for _, cause := range []error{ErrLost, ErrMaxHold, ErrIdle} {
		if err != nil && errors.Is(unlock, cause) && !errors.Is(err, cause) {
			return oneline.Join(err, unlock)
		}
	}
	return err
}

// leave has the transaction give the locks up, or keep them.
func (s *section) leave(ctx context.Context, tx lease.Transaction) error {
	s.takeNext()
	return s.locks.each(func(l *Lock) error {
		switch {
		case s.terms.keeps && l.h.id().Shared:
			return nil
		case s.terms.keeps:
			return s.locks.k.tx.Unmark(ctx, tx, l.h.lease.Key)
		case s.next != nil:
			return l.leaveIn(ctx, tx, s.next.Send)
		}
		return l.UnlockIn(ctx, tx)
	})
}

// strayed has the next attempt release, if this one has handed the key over on another server than
// the one whose tokens the client knows.
func (s *section) strayed() bool {
	if s.next != nil {
		s.next.Strayed()
	}
	return s.next != nil
}

// within is ctx for what is done under the locks: it ends with the first of them, and carries them.
func (ls *Locks) within(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	for _, l := range ls.locks {
		ctx = &chain{Context: ctx, held: l.h, up: chainOf(ctx)}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ls.ctx, func() { cancel(context.Cause(ls.ctx)) })
	return ctx, func(cause error) { stop(); cancel(cause) }
}

// takeNext takes the next caller of this process out of its queue, if the transaction hands the key
// over in place of a release. Close waits until that caller is told, or put back.
func (s *section) takeNext() {
	h := s.locks.locks[0].h
	if len(s.locks.locks) > 1 || s.terms.keeps || !h.k.calls.Enter() {
		return
	}
	if l, alone := h.alone(); alone {
		s.next = h.k.returns.InTx(l)
	}
	if s.next == nil {
		h.k.calls.Leave()
	}
}

// alone returns the lease. It reports false if more than it depends on the row: the handle of a
// Reentrant call, or a copy of the granting request that may come later.
func (h *hold) alone() (l lease.Lease, alone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease.Lease, h.handles == 1 && !h.uncertain
}

// ended tells the next caller of its lease after an acknowledged COMMIT, and else puts it back.
func (s *section) ended(ctx context.Context, committed bool) {
	s.committed = committed
	next, h := s.next, s.locks.locks[0].h
	if next == nil {
		return
	}
	s.next = nil
	defer h.k.calls.Leave()
	if !committed {
		next.TakeBack()
		return
	}
	h.mu.Lock()
	h.freed, h.passed = true, true
	h.endWith(ErrUnlocked, onEnd) // before the next caller is told
	h.mu.Unlock()
	next.Made(ctx)
}
