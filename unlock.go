package rowlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// unlockTimeout bounds how long Unlock itself tries to give the lock back; afterwards the client goes on in the background.
const unlockTimeout = 2 * time.Second

// Unlock gives the lock back and ends its context with ErrUnlocked. It works with a cancelled ctx, as in a deferred call: a
// lock left behind would block everybody until it expires. Nothing of ctx but its values is used.
//
// It returns ErrLost if the lock was lost before (what was done under it since may have met somebody else's work, unless it
// was fenced), ErrMaxHold if it was held too long, ErrUnlocked if it was given back already, and ErrUnknown if the database
// could not do it in 2 to 2.5 s; the client then goes on trying. Inside a transaction of its own that has fenced the lock and has not
// ended, Unlock cannot succeed: it returns ErrUnknown and says so, at once if tx is a *sql.Tx. The key is free soon after that
// transaction has ended. End it first, or use UnlockTx.
func (l *Lock) Unlock(ctx context.Context) error {
	if l.c.janitor.enter() { // Close waits for us, or has ended the lock already
		defer l.c.janitor.leave()
	}
	if !l.finish(ErrUnlocked) {
		err := l.afterwards()
		if l.lingers() {
			_, _ = l.giveUp(ctx)
		}
		return err
	}
	if l.rest() > 0 {
		return l.c.leave(ctx, l)[0]
	}
	if err := l.c.stuck(ctx, l)[0]; err != nil {
		return l.settle(false, err)
	}
	gone, err := l.giveUp(ctx)
	if err != nil {
		err = l.c.explain(ctx, []*Lock{l}, []error{err})[0]
	}
	return l.settle(gone, err)
}

// settle answers an Unlock by what the store has said, and leaves to the janitor what it has not.
func (l *Lock) settle(gone bool, err error) error {
	if l.doubtful {
		l.c.janitor.cleanUp(l.held.Key, l.held.Owner) // a copy of the acquire may still come
	}
	switch {
	case err != nil:
		l.c.janitor.cleanUp(l.held.Key, l.held.Owner)
		if errors.Is(err, ErrUnknown) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case gone && !l.wasLeaving():
		return l.takenOver()
	}
	l.c.released(l)
	return nil
}

// takenOver answers an Unlock of a lock that its row no longer names.
func (l *Lock) takenOver() error {
	l.report(ErrLost)
	return fmt.Errorf("%w: unlock %q: its row no longer names token %d: the lease ran out and the key was taken, or its row was removed", ErrLost, l.held.Key, l.held.Token)
}

// afterwards answers an Unlock that came too late.
func (l *Lock) afterwards() error {
	<-l.ctx.Done() // whoever ended it may be about to say why
	cause := context.Cause(l.ctx)
	if errors.Is(cause, ErrUnlocked) {
		if l.wasLeaving() {
			return nil // UnlockTx did it
		}
		return fmt.Errorf("%w: %q was given back already", ErrUnlocked, l.held.Key)
	}
	return fmt.Errorf("%w: %q", cause, l.held.Key)
}

// lingers reports whether the key of a lock that is over is locked still though its holder says that he is done: after MaxHold there is no
// need to let others wait for the expiry, unless MinHold says so.
func (l *Lock) lingers() bool {
	return errors.Is(context.Cause(l.ctx), ErrMaxHold) && l.rest() <= 0
}

// wasLeaving reports whether a transaction of the caller's may have given the lock back.
func (l *Lock) wasLeaving() bool { return l.c.dog.MayHaveLeft(&l.held) }

// giveUp hands the lock to the next who waits in this process, or else releases it and tells the others. gone says that there was
// nothing to give up, and that this is news: after a try whose outcome is unknown it may be that try's own doing.
func (l *Lock) giveUp(ctx context.Context) (gone bool, err error) {
	ctx = l.c.spells.within(ctx)
	if l.c.fair != nil {
		return l.passOn(ctx)
	}
	key, left := l.held.Key, l.held.Lease
	over, leaving := l.c.lines.Len(key) > 0 && l.c.runs.Over(key, time.Now()), l.wasLeaving()
	if !over && !leaving {
		left, err = l.c.handOn(ctx, left)
		if left.Owner.IsZero() || err != nil {
			return false, err
		}
	}
	if over {
		l.c.lines.Hold(key)
	}
	r, err := l.c.release(ctx, left)
	if err != nil {
		l.c.stayed(key, over)
		return r.Gone && left == l.held.Lease, err
	}
	if leaving && r.Gone && l.c.hints.sends() {
		r.Awaited = l.c.isAwaited(ctx, key) // the caller's transaction has released it, and is over
	}
	l.c.cameFree(key, r.Awaited, over)
	return r.Gone && left == l.held.Lease, nil
}

// passOn gives the lock up to the first in the queue.
func (l *Lock) passOn(ctx context.Context) (gone bool, err error) {
	p, err := l.c.fair.pass(ctx, l.held.Lease)
	if p.Gone && l.wasLeaving() { // the caller's transaction has released it, and is over
		l.c.fair.call(l.held.Key)
		l.c.hints.announce(l.held.Key)
	}
	return p.Gone, err
}

// release tells the store.
func (c *Client) release(ctx context.Context, l lease.Lease) (lease.Released, error) {
	answers, err := c.store.Release(ctx, []lease.Lease{l})
	switch {
	case err != nil:
		return lease.Released{}, err
	case len(answers) != 1:
		return lease.Released{}, fmt.Errorf("%w: unlock %q: %d answers to one request", lease.ErrCorrupt, l.Key, len(answers))
	}
	return answers[0], answers[0].Err
}
