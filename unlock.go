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
// could not be reached in 2 s; the client then goes on trying.
func (l *Lock) Unlock(ctx context.Context) error {
	if !l.finish(ErrUnlocked) {
		return l.afterwards(ctx)
	}
	if h := l.c.cfg.Hooks.Released; h != nil && !l.quiet {
		defer func() { h(l.held.Key, l.held.Token, time.Since(l.since)) }()
	}
	gone, err := l.release(ctx)
	if l.doubtful {
		l.c.janitor.cleanUp(l.held.Key, l.held.Owner) // a copy of the acquire may still come
	}
	switch {
	case err != nil:
		l.c.janitor.cleanUp(l.held.Key, l.held.Owner)
		return err
	case gone && !l.wasLeaving():
		return fmt.Errorf("%w: %q was taken over before it was unlocked", ErrLost, l.held.Key)
	}
	return nil
}

// afterwards answers an Unlock that came too late.
func (l *Lock) afterwards(ctx context.Context) error {
	cause := context.Cause(l.ctx)
	if errors.Is(cause, ErrUnlocked) {
		if l.wasLeaving() {
			return nil // UnlockTx did it
		}
		return fmt.Errorf("%w: %q was given back already", ErrUnlocked, l.held.Key)
	}
	if errors.Is(cause, ErrMaxHold) {
		_, _ = l.release(ctx) // the holder says it is done: no need to let others wait for the expiry
	}
	return fmt.Errorf("%w: %q", cause, l.held.Key)
}

func (l *Lock) wasLeaving() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaving
}

// release tells the store. gone says that there was nothing to give back, and that this is news: after a try whose outcome is
// unknown it may be that try's own doing.
func (l *Lock) release(ctx context.Context) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	answers, err := l.c.store.Release(ctx, []lease.Lease{l.held.Lease})
	if err == nil && len(answers) == 1 {
		return answers[0].Gone, answers[0].Err
	}
	return false, err
}
