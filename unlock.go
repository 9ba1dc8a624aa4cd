package rowlock

import (
	"cmp"
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
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
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
	switch {
	case l.nested != nil:
		l.nested.cancel(ErrUnlocked)
	case open > 0:
		l.h.cancel(ErrUnlocked) // the first handle's context; the hold goes on
	}
	switch {
	case again && open > 0:
		return false, fmt.Errorf("%w: %q was released already", ErrUnlocked, l.h.lease.Key)
	case again:
		<-l.Context().Done() // the call that has released it is about to end it
		return false, l.h.afterwards()
	case open > 0 && l.h.why() != nil:
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
		delete(h.others, l.nested)
	}
	return again, h.handles
}

// leak releases the lock of a handle that its caller has forgotten: the garbage collector calls it.
// One that has ended before is no news, but its key may still be locked.
func (l *Lock) leak() {
	h := l.h
	// A bubble of testing/synctest, whose clock begins in 2000, forbids others to touch its
	// channels.
	if h.since.Year() < 2020 {
		return
	}
	over := h.why() != nil
	last, _ := l.close()
	if !over {
		h.leaked()
	}
	if last && h.owes() && h.k.calls.Enter() { // Close waits for it, or has given the lease away
		go func() { // not on the garbage collector's goroutine
			defer h.k.calls.Leave()
			var errs [1]error
			h.k.release(h.k.returns.Within(context.Background()), nil, []*hold{h}, nil, errs[:], true)
		}()
	}
}

// leaked tells of a lock that was forgotten.
func (h *hold) leaked() {
	age := time.Since(h.since)
	h.k.counts.leaks.Add(1)
	h.k.cfg.Logger.LogAttrs(&h.ctx, slog.LevelWarn,
		"rowlock: a lock was forgotten: its handle is garbage, and Unlock was not called; releasing it",
		slog.String("key", h.lease.Key), slog.Int64("token", h.lease.Token),
		slog.Duration("age", age), slog.String("taken", h.where()))
	if leaked := h.k.cfg.Hooks.Leaked; leaked != nil {
		leaked(&h.ctx, h.lease.Key, h.lease.Token, age, h.where())
	}
}

// A lock lives as follows. Each arrow is one step under the hold's mutex.
//
//	           Downgrade: renewals pause, and the deadline is watched
//	  live ⇄ downgrading (a live hold whose sharing is not nil)
//	    │         │
//	    ├─────────┤ Unlock, Close, the finalizer; loss, a forced release; MaxHold, MaxIdle
//	    │         ▼
//	    │       ended ── the contexts have ended, and the lease is in the store still
//	    │         │ Unlock, Close or the finalizer, whichever is first; after a loss too, because the
//	    │         │ store may have the lease although the client cannot prove it
//	    │         ▼                            MinHold
//	    └────► released ─────────────────────────────────► lingering
//	UnlockTx   the lease was given to one of:    ▲              │ UnlockNow
//	           a release or a hand-over,         └──────────────┘
//	           the orphan cleaner
//
// Whatever ends a lock, its lease is given away exactly once: claim has one caller for it. A
// Downgrade that is under way when the lock ends is waited for, because it decides what the lease
// is; if that stays unknown, the orphan cleaner releases the lease in both forms.
type life uint8

const (
	live life = iota
	ended
	released
	lingering // by MinHold: the lease runs out by itself
)

// why is the cause of the lock's end, or nil.
func (h *hold) why() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

// owes reports whether the lease was not given away yet.
func (h *hold) owes() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.life <= ended
}

// lockSettled locks the mutex at a moment when no Downgrade is under way. After an error it has not
// locked it.
func (h *hold) lockSettled(ctx context.Context) error {
	for {
		h.mu.Lock()
		sharing := h.sharing
		if sharing == nil {
			return nil
		}
		h.mu.Unlock()
		select {
		case <-sharing:
		case <-ctx.Done():
			return fmt.Errorf("rowlock: %q: its Downgrade is under way: %w", h.lease.Key, ctx.Err())
		}
	}
}

// changes reports whether the lease is another than it was, or is about to be.
func (h *hold) changes(was lease.Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sharing != nil || h.lease.Lease != was
}

// end ends the lock on our side: no renewal is sent after it, and the contexts of all handles end.
// It reports false if the lock was over already. to is ended, or released if there is no lease to
// give away. All of it is one step: a caller that finds the lock over may give the lease away.
func (h *hold) end(cause error, to life) bool {
	h.mu.Lock()
	if h.life != live {
		h.mu.Unlock()
		return false
	}
	h.life, h.cause = to, cause
	h.k.dog.Drop(&h.lease)
	h.cancel(cause)
	for n := range h.others {
		n.cancel(cause)
	}
	h.others = nil
	h.mu.Unlock()
	if to == released {
		h.k.remove(h)
	}
	if h.space != nil {
		h.space.Free(1)
	}
	return true
}

// claimed says for what a caller may give a lease away.
type claimed uint8

const (
	notClaimed    claimed = iota // another call has it
	claimedFresh                 // the end of the lock was wanted, and is answered by what comes of it
	claimedLate                  // the lock ended otherwise before: by MaxHold, MaxIdle or its loss
	claimedAgain                 // MinHold has kept it
	claimedClosed                // MinHold keeps it, and the client is closed
)

// claim has the caller give the lease of a lock that is over away.
func (h *hold) claim(minHold, open bool) claimed {
	how := h.claiming(minHold, open)
	if how != notClaimed {
		h.k.remove(h) // not under the hold's mutex, which comes after the keeper's
	}
	return how
}

func (h *hold) claiming(minHold, open bool) claimed {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.life == lingering && !minHold && !open:
		return claimedClosed
	case h.life == lingering && !minHold:
		h.life = released
		return claimedAgain
	case h.life != ended:
		return notClaimed
	}
	h.life = released
	if errors.Is(h.cause, ErrUnlocked) {
		return claimedFresh
	}
	return claimedLate
}

// downgraded notes what became of a Downgrade, and returns its error. The lock may have ended
// meanwhile: then its lease is given away as what it is now. If that was done before, without
// knowing, the orphan cleaner releases what there may be.
func (h *hold) downgraded(a lease.Renewed, sent time.Time) error {
	shared := a.Err == nil && a.Outcome == lease.Extended
	unknown := errors.Is(a.Err, lease.ErrUnknown)
	err := a.Err
	h.mu.Lock()
	was := h.life
	switch {
	case was == live && a.Err == nil && !shared:
		err = fmt.Errorf("%w: %q, with token %d", ErrLost, h.lease.Key, h.lease.Token)
	case was == live && !unknown:
		err = cmp.Or(h.k.dog.Resume(&h.lease, shared, sent), a.Err)
	case shared:
		h.k.dog.Share(&h.lease)
	}
	h.either = unknown
	l := h.lease.Lease
	close(h.sharing)
	h.sharing = nil
	h.mu.Unlock()
	switch {
	case was != live && unknown, was == released && shared:
		h.k.orphans.AddLeases(handback.Forms(l)...)
	case unknown:
		h.ended(ErrLost)
		h.k.release(h.k.returns.Within(context.Background()), nil, []*hold{h}, nil, make([]error, 1), true)
	}
	switch {
	case was != live:
		return cmp.Or(h.afterwards(), error(ErrUnlocked))
	case errors.Is(err, ErrLost), errors.Is(err, ErrMaxHold), errors.Is(err, ErrIdle):
		h.ended(err)
	}
	return err
}

// downgradeGrace is how long what ends a lock waits for a Downgrade that is under way. The end of
// the lock has ended that call's ctx.
const downgradeGrace = seam.Timeout / 4

// settle waits until it is known what the leases are. It waits once, whatever hangs.
func (k *keeper) settle(ctx context.Context, holds []*hold) {
	for _, h := range holds {
		h.mu.Lock()
		sharing := h.sharing
		h.mu.Unlock()
		if sharing == nil {
			continue
		}
		short, cancel := context.WithTimeout(ctx, downgradeGrace)
		defer cancel()
		ctx = short
		select {
		case <-sharing:
		case <-ctx.Done():
			return
		}
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
	for _, h := range holds {
		h.end(ErrUnlocked, ended)
	}
	k.settle(ctx, holds)
	for n, h := range holds {
		how := h.claim(minHold, open)
		if how != claimedFresh && how != claimedAgain {
			errs[n] = h.afterwards()
		}
		switch how {
		case notClaimed:
			items[n] = nil
		case claimedClosed:
			errs[n], items[n] = acquire.Closed([]string{h.lease.Key}), nil
		default:
			h.describe(items[n], how, minHold)
			if heirs != nil && errs[n] == nil {
				items[n].Heir = heirs[n]
			}
		}
	}
	k.giveUp(ctx, caller, holds, items)
	for n, h := range holds {
		if items[n] == nil {
			continue
		}
		h.noteKept(items[n])
		h.makeRoom()
		told := h.told(caller)
		if errs[n] == nil {
			errs[n] = h.settle(told, items[n])
		} else if items[n].Err != nil {
			h.unlockFailed(told, items[n].Err)
		}
	}
}

// giveUp tells of the leases, and gives them up even if a hook panics: no other call will.
func (k *keeper) giveUp(ctx, caller context.Context, holds []*hold, items []*handback.Item) {
	defer k.returns.GiveUp(ctx, items)
	for n, h := range holds {
		h.releasing(h.told(caller), items[n])
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
	if releasing == nil || i == nil || h.lease.Quiet || i.Keep > 0 || i.Left ||
		errors.Is(h.why(), ErrLost) {
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
		h.life = lingering
		h.mu.Unlock()
	}
}

// isKept reports whether MinHold has left the key locked.
func (h *hold) isKept() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.life == lingering
}

// describe says how a lock that is over is given up.
func (h *hold) describe(i *handback.Item, how claimed, minHold bool) {
	h.mu.Lock()
	i.Lease, i.Either = h.lease.Lease, h.either || h.sharing != nil
	h.mu.Unlock()
	i.Again = how == claimedAgain
	i.Fenced, i.Left = h.k.dog.InTx(&h.lease)
	i.Open, i.Doubtful, i.Slot = h.inOwnTx(), h.doubtful, h.slot
	i.Keep = h.keep(minHold)
}

// settle answers an Unlock by what became of the lease.
func (h *hold) settle(ctx context.Context, i *handback.Item) error {
	if i.Err != nil {
		h.unlockFailed(ctx, i.Err)
	}
	switch {
	case i.Again && i.Err == nil && i.Gone:
		return fmt.Errorf("%w: %q: its MinHold is over", ErrUnlocked, h.lease.Key)
	case i.Again: // the Unlock before has told the hooks of its end
		return i.Err
	case i.Err != nil: // it has ended for its holder
	case i.Gone && i.Forced:
		h.lost(ErrLost)
		return fmt.Errorf("%w: unlock %q: an operator had taken token %d away, so that the transaction "+
			"of its UnlockTx was not committed", ErrLost, h.lease.Key, h.lease.Token)
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

// afterwards answers an Unlock that came too late, or that another one was faster than.
func (h *hold) afterwards() error {
	cause := h.why()
	if cause != nil && !errors.Is(cause, ErrUnlocked) {
		return fmt.Errorf("%w: %q", cause, h.lease.Key)
	}
	if cause != nil && h.wasLeaving() {
		return nil // UnlockTx did it
	}
	return fmt.Errorf("%w: %q was released already", ErrUnlocked, h.lease.Key)
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
