package rowlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// mostTogether is how many keys can be locked together: as many as go into one statement.
const mostTogether = 512

// TryLockAll gets the locks on all keys if all are free, in one statement, and otherwise none: then the error is a *HeldError, or several
// joined in key order, of every key that is known to be held. It never waits, and writes nothing when it loses.
//
// Order does not matter, and a key that comes twice is locked once. There may be 1 to 512 of them. Every option applies to each lock.
//
// On a store that is no lease.AllAcquirer, as forupdate and optimistic are none, and in a Fair client, the keys are asked for in one batch, and
// what was granted is given back if not all were: others may find a key held that its asker does not keep.
func (c *Client) TryLockAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	keys, r, err := c.checkAll(keys, opts)
	if err != nil {
		return nil, err
	}
	return c.attemptAll(ctx, keys, r, time.Now())
}

// LockAll waits until it has the locks on all keys or ctx ends; then the error is ctx.Err() and ErrHeld (or ErrBusy), as with Lock. Keys
// and options are as for TryLockAll.
//
// It holds none of the keys while it waits for another, so that it keeps nobody from working and cannot deadlock, with its like or with
// anything else, unless its caller holds other locks already. The price is that it must find all of them free at one moment: if there is always one that somebody has, it can wait
// for ever. Give it a ctx that ends, or let it be served in order: LockAll of a Fair client locks one key after the other, in key
// order, and keeps what it has while it stands in the queue for the next. It cannot deadlock with another LockAll, but with one who
// holds a later key and waits for an earlier one.
func (c *Client) LockAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	keys, r, err := c.checkAll(keys, opts)
	if err != nil {
		return nil, err
	}
	if !c.janitor.enter() { // Close waits for us, as for Lock
		return nil, fmt.Errorf("%w: lock %q", lease.ErrClosed, keys)
	}
	defer c.janitor.leave()
	if c.fair != nil {
		return c.lockInOrder(ctx, keys, r)
	}
	return c.waitAll(ctx, keys, r)
}

// checkAll returns the keys in order, each once.
func (c *Client) checkAll(keys []string, opts []Option) ([]string, request, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	switch n := len(keys); {
	case n == 0:
		return nil, request{}, fmt.Errorf("%w: no keys to lock; name at least one", lease.ErrConfig)
	case n > mostTogether:
		return nil, request{}, fmt.Errorf("%w: %d keys to lock together; at most %d are allowed: lock one key that stands for all of them", lease.ErrConfig, n, mostTogether)
	}
	for _, key := range keys[1:] {
		if err := lease.CheckKey(key); err != nil {
			return nil, request{}, err
		}
	}
	r, err := c.check(keys[0], opts)
	return keys, r, err
}

// attemptAll asks the store once, under an owner of its own for each key.
func (c *Client) attemptAll(ctx context.Context, keys []string, r request, began time.Time) (*Locks, error) {
	if !c.janitor.enter() {
		return nil, fmt.Errorf("%w: lock %q", lease.ErrClosed, keys)
	}
	defer c.janitor.leave()
	reqs := make([]lease.AcquireRequest, len(keys))
	for i, key := range keys {
		reqs[i] = lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: r.ttl, Note: r.note}
	}
	sent := time.Now() // before sending: a slow reply must not stretch the lease
	answers, err := c.acquireAll(ctx, reqs)
	switch {
	case err != nil && errors.Is(err, lease.ErrUnknown):
		c.cleanUpAll(reqs)
		return nil, err
	case err != nil:
		return nil, err
	case !answers[0].Granted:
		return nil, c.refused(reqs, answers)
	}
	return c.grantedAll(ctx, reqs, answers, r, sent, began)
}

// acquireAll grants all or none, in one statement where the store can do that. Out of turn it would be in a fair client.
func (c *Client) acquireAll(ctx context.Context, reqs []lease.AcquireRequest) (answers []lease.Acquired, err error) {
	err = lease.ErrUnsupported
	if all, ok := seam.As[lease.AllAcquirer](c.store); ok && c.fair == nil {
		answers, err = all.AcquireAll(ctx, reqs)
	}
	if errors.Is(err, lease.ErrUnsupported) {
		answers, err = c.acquire(ctx, reqs)
	}
	if err == nil && len(answers) != len(reqs) {
		err = fmt.Errorf("%w: lock %q: %w: %d answers to %d requests", lease.ErrUnknown, reqs[0].Key, lease.ErrCorrupt, len(answers), len(reqs))
	}
	if err != nil {
		return nil, err
	}
	return answers, c.takeBack(ctx, reqs, answers)
}

// takeBack makes none of a part: it gives back what was granted unless all was, and returns what has failed.
func (c *Client) takeBack(ctx context.Context, reqs []lease.AcquireRequest, answers []lease.Acquired) (err error) {
	var part []lease.Lease
	for i, a := range answers {
		switch {
		case a.Err != nil:
			err = join(err, a.Err)
		case a.Granted:
			part = append(part, lease.Lease{Key: reqs[i].Key, Owner: reqs[i].Owner, Token: a.Token})
		}
	}
	if len(part) == len(reqs) || len(part) == 0 {
		return err
	}
	for i := range answers {
		if answers[i].Granted {
			answers[i] = lease.Acquired{Possible: true, Doubtful: answers[i].Doubtful}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	c.releaseLeases(ctx, part)
	for _, l := range part {
		c.call(l.Key)
	}
	return err
}

func (c *Client) cleanUpAll(reqs []lease.AcquireRequest) {
	for i := range reqs {
		c.janitor.cleanUp(reqs[i].Key, reqs[i].Owner)
	}
}

// refused is what is in the way, in key order.
func (c *Client) refused(reqs []lease.AcquireRequest, answers []lease.Acquired) error {
	var held []error
	for i, a := range answers {
		if a.Doubtful {
			c.janitor.cleanUp(reqs[i].Key, reqs[i].Owner) // an earlier try of this request may yet be granted
		}
		if a.Possible {
			continue
		}
		held = append(held, c.contended(reqs[i].Key, a.Holder, false))
	}
	switch len(held) {
	case 0:
		return &HeldError{Key: reqs[0].Key} // the store does not say
	case 1:
		return held[0]
	}
	return join(held...)
}

// grantedAll makes Locks of the answers, or of none if one cannot be trusted any more.
func (c *Client) grantedAll(ctx context.Context, reqs []lease.AcquireRequest, answers []lease.Acquired, r request, sent, began time.Time) (*Locks, error) {
	locks := make([]*Lock, 0, len(reqs))
	whole := false
	defer func() {
		if !whole { // or a hook has panicked
			c.cleanUpAll(reqs[len(locks):])
			_ = c.unlockAll(ctx, locks, false)
		}
	}()
	for i := range reqs {
		l, err := c.granted(ctx, reqs[i], answers[i], r, sent, began)
		if err != nil {
			return nil, err
		}
		locks = append(locks, l)
	}
	whole = true
	return c.newLocks(ctx, locks), nil
}
