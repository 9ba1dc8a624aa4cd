package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/queue"
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
// it in 2 to 2.5 s, or at once refused every connection; the client then goes on trying. Inside a
// transaction of its own that has fenced the lock and has not ended, Unlock cannot succeed: it
// returns ErrUnknown and says so, at once if tx is a *sql.Tx. The key is free soon after that
// transaction has ended. End it first, or use UnlockTx. After UnlockTx in a transaction that is
// open it returns nil: the key is free when that was committed, or soon after a rollback.
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
	due, err := l.close(minHold)
	if !due {
		return err
	}
	part := [1]parting{{h: l.h}}
	var missing error
	if ctx == nil { // a deferred Unlock whose error is ignored must release all the same
		missing, ctx = isnil.Context("Unlock", ctx), context.Background()
	}
	l.h.k.release(l.h.k.returns.Within(ctx), ctx, part[:], minHold)
	if missing == nil {
		return part[0].err
	}
	return oneline.Join(part[0].err, missing)
}

// close ends a handle, and the lock with the last of them. It reports true if the lease is to be
// given away, and otherwise the answer of its Unlock. Without minHold that is so too if MinHold has
// left the key locked.
func (l *Lock) close(minHold bool) (due bool, err error) {
	h := l.h // of a nil l this panics; SetFinalizer would end the process, which no recover stops
	runtime.SetFinalizer(l, nil)
	h.mu.Lock()
	again := l.closed
	if !again {
		l.closed = true
		h.handles--
		delete(h.nested, l.nested)
	}
	open, over := h.handles, h.cause != nil
	switch {
	case open == 0:
		h.endWith(ErrUnlocked, onEnd)
	case l.nested == nil:
		h.ctx.make() // the first handle's context ends; the lock goes on
		h.ctx.cancel(ErrUnlocked)
	}
	if l.nested != nil {
		l.nested.cancel(ErrUnlocked)
	}
	due = open == 0 && !again || h.phase == lingering && !minHold
	h.mu.Unlock()
	switch {
	case due:
		return true, nil
	case again && open > 0:
		return false, fmt.Errorf("%w: %q was released already", ErrUnlocked, h.lease.Key)
	case again, open > 0 && over:
		return false, h.afterwards()
	}
	return false, nil
}

// leak releases the lock of a handle that its caller has forgotten: the garbage collector calls it.
// One that has ended before is no news, but its key may still be locked.
func (l *Lock) leak() {
	h := l.h
	// A bubble of testing/synctest, whose clock begins in 2000, forbids others to touch its channels.
	if h.since().Year() < 2020 {
		return
	}
	if h.why() == nil {
		h.leaked()
	}
	due, _ := l.close(true)
	if due && h.k.calls.Enter() { // Close waits for it, or has given the lease away
		go func() { // not on the garbage collector's goroutine
			defer h.k.calls.Leave()
			h.k.release(h.k.returns.Within(context.Background()), nil, partings([]*hold{h}), true)
		}()
	}
}

// parting is a lock that is released, and what came of it.
type parting struct {
	h        *hold
	next     *queue.NextOwner // the next owner of its slot, or nil
	item     *queue.Release   // nil: another call gives the lease away
	again    bool             // an Unlock before has left the lease to MinHold
	demanded bool
	err      error // of its Unlock
}

// partings are locks that are released without a next owner.
func partings(holds []*hold) []parting {
	parts := make([]parting, len(holds))
	for i, h := range holds {
		parts[i].h = h
	}
	return parts
}

// release releases locks in one call to the store for each way to do it. minHold leaves those
// locked whose MinHold is not over; without it, those that were left so before are released too.
// Hooks get the ctx of the caller, or each lock's own if caller is nil.
func (k *keeper) release(ctx, caller context.Context, parts []parting, minHold bool) {
	open := k.calls.Enter() // Close waits for this call, or has ended the locks already
	if open {
		defer k.calls.Leave()
	}
	waits := false
	for i := range parts {
		h := parts[i].h
		h.mu.Lock()
		h.endWith(ErrUnlocked, onEnd)
		waits = waits || h.phase == ending
		h.mu.Unlock()
	}
	if waits {
		awaitAnswers(ctx, parts)
	}
	items := make([]queue.Release, 0, len(parts)) // with room for all, so that none moves
	for n := range parts {
		switch item, to := parts[n].claim(minHold, open); to {
		case toRelease:
			items = append(items, item)
			parts[n].item = &items[len(items)-1]
		case toCleaner:
			left := item
			parts[n].item = &left
		}
	}
	if k.cfg.Hooks.Releasing == nil {
		k.giveAway(ctx, caller, parts, items)
	} else {
		k.tellAndRelease(ctx, caller, parts, items)
	}
}

// tellAndRelease tells of the leases, and releases them even if a hook panics: no other call will.
func (k *keeper) tellAndRelease(
	ctx, caller context.Context, parts []parting, items []queue.Release,
) {
	defer k.giveAway(ctx, caller, parts, items)
	for i := range parts {
		h, item := parts[i].h, parts[i].item
		if item == nil || h.lease.Quiet || item.Keep > 0 || item.Left || errors.Is(h.why(), ErrLost) {
			continue // the key is not about to be free
		}
		told, hooks := h.told(caller)
		hooks.Releasing(told, h.lease.Key, h.lease.Token)
	}
}

// claim has the caller give the lease away, and returns where to and how.
func (p *parting) claim(minHold, open bool) (i queue.Release, to place) {
	h := p.h
	h.mu.Lock()
	p.again = h.phase == lingering && !minHold
	e := onClaim
	if p.again && open {
		e = onTakeBack
	}
	to = h.step(e)
	cause, tx := h.cause, h.tx
	h.tx, i.Freed, i.Passed = nil, h.freed, h.passed
	i.Lease, p.demanded = h.lease.Lease, h.demanded
	h.mu.Unlock()
	switch {
	case to != nowhere && (p.again || errors.Is(cause, ErrUnlocked)):
		i.Next = p.next
	case p.again: // the client is closed
		p.err = queue.Closed([]string{h.lease.Key})
	default:
		p.err = h.afterwards()
	}
	if to == nowhere {
		return i, to
	}
	h.k.remove(h) // not under the hold's mutex, which comes after the keeper's
	if to == toCleaner {
		i.Lease.Shared = true // or not
		h.k.orphans.AddLeases(i.Lease)
		i.Answer.Err = fmt.Errorf("%w: unlock %q: its Downgrade has an unknown outcome", ErrUnknown, i.Lease.Key)
		return i, to
	}
	i.Fenced, i.Left = h.k.dog.InTx(&h.lease)
	i.Left = i.Left || i.Freed
	i.Open = tx != nil && isOpen(tx)
	if i.Slot = h.slot; minHold && h.minHold > 0 {
		i.Keep = h.rest()
	}
	if h.uncertain || i.Keep > 0 {
		i.Late = h.k.dog.Renewing(&h.lease)
	}
	return i, to
}

// giveAway gives the leases up, tells what became of them, and answers each Unlock.
func (k *keeper) giveAway(ctx, caller context.Context, parts []parting, items []queue.Release) {
	k.returns.GiveUp(ctx, items)
	for n := range parts {
		p := &parts[n]
		h, i := p.h, p.item
		if i == nil {
			continue
		}
		if i.Keep > 0 && !i.Answer.Gone {
			h.mu.Lock()
			h.step(onMinHold)
			h.mu.Unlock()
		}
		if p.demanded { // the key is left to those that have waited for it, for as long as polls may take
			k.room.CompareAndSwap(nil, new(cycle.Room))
			k.room.Load().Make(h.lease.Key, k.cfg.PollMax+2*k.cfg.PollMin)
		}
		if i.Answer.Err != nil {
			h.unlockFailed(caller, i.Answer.Err)
		}
		if p.err == nil {
			p.err = p.answer(caller)
		}
	}
}

// answer answers an Unlock by what became of the lease.
func (p *parting) answer(caller context.Context) error {
	h, key, a := p.h, p.h.lease.Key, &p.item.Answer
	switch {
	case p.again && a.Err == nil && a.Gone:
		return fmt.Errorf("%w: %q: its MinHold is over", ErrUnlocked, key)
	case p.again: // the Unlock before has told the hooks of its end
		return a.Err
	case a.Err != nil: // it has ended for its holder
	case a.Gone && a.Forced:
		h.lost(ErrLost)
		return fmt.Errorf("%w: unlock %q: an operator had taken token %d away, so that the transaction "+
			"of its UnlockTx was not committed", ErrLost, key, h.lease.Token)
	case a.Gone && !p.item.Left:
		h.lost(ErrLost)
		return fmt.Errorf("%w: unlock %q: its row no longer names token %d: "+
			"the lease ran out and the key was taken, or its row was removed", ErrLost, key, h.lease.Token)
	}
	h.released(caller)
	return a.Err
}

// awaitAnswers waits until it is known what the leases are. It waits once, whatever hangs.
func awaitAnswers(ctx context.Context, parts []parting) {
	ctx, cancel := context.WithTimeout(ctx, downgradeGrace)
	defer cancel()
	for i := range parts {
		if parts[i].h.lockAnswered(ctx) != nil {
			return
		}
		parts[i].h.mu.Unlock()
	}
}

// downgradeGrace is how long what ends a lock waits for a Downgrade that is under way. The end of
// the lock has ended that call's ctx.
const downgradeGrace = adapter.Timeout / 4

// isOpen reports whether tx, which was the last to fence the lock, is certainly open. It sends
// nothing: a *sql.Tx, and what embeds one, knows by itself whether Commit or Rollback was called.
// It refuses a statement of no pool, but only after it has found that it is not over.
func isOpen(tx Tx) bool {
	t, ok := tx.(interface {
		StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt
	})
	return ok && !errors.Is(t.StmtContext(context.Background(), new(sql.Stmt)).Close(), sql.ErrTxDone)
}
