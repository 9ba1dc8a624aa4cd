package rowlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// unlockAll gives locks back in one call to the store. minHold says that those whose time is not over are to stay locked.
func (c *Client) unlockAll(ctx context.Context, locks []*Lock, minHold bool) error {
	if c.janitor.enter() { // Close waits for us, or has ended the locks already
		defer c.janitor.leave()
	}
	errs := make([]error, len(locks))
	var mine, leaving, lingering []*Lock
	var at, leavingAt []int // where they are in locks
	for i, l := range locks {
		if !l.finish(ErrUnlocked) {
			if errs[i] = l.afterwards(); l.lingers() {
				lingering = append(lingering, l)
			}
			continue
		}
		if minHold && l.rest() > 0 {
			leaving, leavingAt = append(leaving, l), append(leavingAt, i)
			continue
		}
		mine, at = append(mine, l), append(at, i)
	}
	c.dismiss(ctx, lingering)
	for i, err := range c.leave(ctx, leaving...) {
		errs[leavingAt[i]] = err
	}
	stuck := c.stuck(ctx, mine...)
	var free []*Lock
	var freeAt []int
	for i, l := range mine {
		if stuck[i] != nil {
			errs[at[i]] = l.settle(false, stuck[i])
			continue
		}
		free, freeAt = append(free, l), append(freeAt, at[i])
	}
	for i, err := range c.giveUpAll(ctx, free) {
		errs[freeAt[i]] = err
	}
	return joined(errs)
}

// dismiss frees keys whose locks have ended otherwise, in one call to the store: one for each would wait 512 times for a store that hangs.
func (c *Client) dismiss(ctx context.Context, locks []*Lock) {
	if len(locks) == 0 {
		return
	}
	leases := leasesOf(locks)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	c.releaseLeases(ctx, leases)
	for _, l := range leases {
		c.call(l.Key)
	}
}

func leasesOf(locks []*Lock) []lease.Lease {
	leases := make([]lease.Lease, len(locks))
	for i, l := range locks {
		leases[i] = l.held.Lease
	}
	return leases
}

// joined leaves out what was given back before, unless there is nothing else.
func joined(errs []error) error {
	var before error
	n := 0
	for i, err := range errs {
		if err != nil && errors.Is(err, ErrUnlocked) {
			before, errs[i] = err, nil
			n++
		}
	}
	if n > 0 && n == len(errs) {
		return before
	}
	return join(errs...)
}

// giveUpAll tells the store, and those who wait. Nothing is handed over, because that would be a statement for each: who waits in this
// process is called to bid instead.
func (c *Client) giveUpAll(ctx context.Context, locks []*Lock) []error {
	if len(locks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	leases := leasesOf(locks)
	if c.fair != nil {
		return c.passOnAll(ctx, locks, leases)
	}
	over := c.holdBack(leases)
	answers, err := c.store.Release(ctx, leases)
	if err == nil && len(answers) != len(leases) {
		err = fmt.Errorf("%w: unlock: %d answers to %d requests", lease.ErrCorrupt, len(answers), len(leases))
	}
	if err != nil { // of the call: so of each
		answers = slices.Repeat([]lease.Released{{Err: err}}, len(leases))
	}
	c.allCameFree(ctx, locks, answers, over)
	errs := make([]error, len(locks))
	for i := range locks {
		errs[i] = answers[i].Err
	}
	errs = c.explain(ctx, locks, errs)
	for i, l := range locks {
		errs[i] = l.settle(answers[i].Gone, errs[i])
	}
	return errs
}

// holdBack keeps those of this process who wait from bidding for what it has had for long enough.
func (c *Client) holdBack(leases []lease.Lease) (over []bool) {
	over = make([]bool, len(leases))
	for i, l := range leases {
		if over[i] = c.lines.Len(l.Key) > 0 && c.runs.Over(l.Key, time.Now()); over[i] {
			c.lines.Hold(l.Key)
		}
	}
	return over
}

// allCameFree is cameFree with one hint for all keys.
func (c *Client) allCameFree(ctx context.Context, locks []*Lock, answers []lease.Released, over []bool) {
	var awaited []string
	for i, l := range locks {
		if answers[i].Err == nil && answers[i].Gone && l.wasLeaving() && c.hints.sends() {
			answers[i].Awaited = c.isAwaited(ctx, l.held.Key) // the caller's transaction has released it, and is over
		}
		if answers[i].Awaited && !over[i] {
			awaited = append(awaited, l.held.Key)
		}
	}
	c.hints.announce(awaited...)
	for i, l := range locks {
		if answers[i].Err != nil {
			c.stayed(l.held.Key, over[i])
			continue
		}
		c.cameFree(l.held.Key, over[i] && answers[i].Awaited, over[i])
	}
}

// passOnAll gives each lock up to the first in its queue.
func (c *Client) passOnAll(ctx context.Context, locks []*Lock, leases []lease.Lease) []error {
	sent := time.Now()
	answers, err := c.fair.store.Pass(ctx, leases)
	if err == nil && len(answers) != len(leases) {
		err = fmt.Errorf("%w: unlock: %d answers to %d requests", lease.ErrCorrupt, len(answers), len(leases))
	}
	if err != nil {
		answers = make([]lease.Passed, len(leases))
	}
	errs := make([]error, len(locks))
	for i, l := range locks {
		if answers[i].Gone && l.wasLeaving() { // the caller's transaction has released it, and is over
			c.fair.call(l.held.Key)
			c.hints.announce(l.held.Key)
		}
		c.fair.passed(l.held.Key, answers[i], sent)
		errs[i] = l.settle(answers[i].Gone, join(err, answers[i].Err))
	}
	return errs
}
