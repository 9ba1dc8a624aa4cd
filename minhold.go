package rowlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// rest is how long the key is still to stay locked, whatever its holder says. While it is more than 0, UnlockTx has refused.
func (l *Lock) rest() time.Duration { return l.least - time.Since(l.since) }

// leave gives locks up but not their keys: each lease is made to end when its MinHold is over. It is one call to the store for all of them,
// so that Close of many need not wait for each. Nothing is cleaned up after an error, because cleaning up would free the key; it
// comes free when the lease ends that it has. A lease that is behind a fence still (the holder's own transaction is open) stays as it is
// for the same reason.
//
// A renewal that is under way may come after and give the lease another TTL: at least is what MinHold promises.
func (c *Client) leave(ctx context.Context, locks ...*Lock) []error {
	if len(locks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	reqs := make([]lease.RenewRequest, len(locks))
	for i, l := range locks {
		reqs[i] = lease.RenewRequest{Lease: l.held.Lease, TTL: max(l.rest(), 1)}
	}
	answers, err := c.store.Renew(ctx, reqs)
	if err == nil && len(answers) != len(reqs) {
		err = fmt.Errorf("%w: %d answers to %d requests", lease.ErrCorrupt, len(answers), len(reqs))
	}
	if err != nil {
		answers = slices.Repeat([]lease.Renewed{{Err: err}}, len(reqs))
	}
	errs := make([]error, len(locks))
	for i, l := range locks {
		errs[i] = l.left(answers[i])
	}
	return errs
}

// left answers an Unlock by what the store has said of the lease that is to run out.
func (l *Lock) left(a lease.Renewed) error {
	switch {
	case a.Err != nil:
		return fmt.Errorf("%w: unlock %q: %w", ErrUnknown, l.held.Key, a.Err)
	case a.Outcome == lease.Lost:
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
