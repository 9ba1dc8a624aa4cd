package rowlock

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// rest is how long the key is still to stay locked, whatever its holder says. Of a lock that was lost it is 0: there is nothing
// left to keep.
func (l *Lock) rest() time.Duration { return l.least - time.Since(l.since) }

// leave gives the lock up but not the key: its lease is made to end when MinHold is over. Nothing is cleaned up after an error,
// because cleaning up would free the key; it comes free when the lease ends that it has. A lease that is behind a fence still
// (the holder's own transaction is open) stays as it is for the same reason.
//
// A renewal that is under way may come after and give the lease another TTL: at least is what MinHold promises.
func (l *Lock) leave(ctx context.Context, rest time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	answers, err := l.c.store.Renew(ctx, []lease.RenewRequest{{Lease: l.held.Lease, TTL: rest}})
	if err == nil && len(answers) != 1 {
		err = fmt.Errorf("%w: %d answers to one request", lease.ErrCorrupt, len(answers))
	}
	if err == nil {
		err = answers[0].Err
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: unlock %q: %w", ErrUnknown, l.held.Key, err)
	case answers[0].Outcome == lease.Lost:
		return l.takenOver()
	}
	l.c.released(l)
	return nil
}

// released tells of a lock that its holder gave back.
func (c *Client) released(l *Lock) {
	if h := c.cfg.Hooks.Released; h != nil && !l.quiet {
		h(l.held.Key, l.held.Token, time.Since(l.since))
	}
}
