package rowlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// TryLock gets the lock on key if it is free, and otherwise returns a *HeldError at once. It writes nothing when it loses.
//
// A database that does not answer is waited for until ctx ends, or without a deadline for the TTL and a second.
//
// ctx bounds the call, not the lock: a lock that was got is held until Unlock, MaxHold or its loss, whatever becomes of ctx.
func (c *Client) TryLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	r, err := c.check(key, opts)
	if err != nil {
		return nil, err
	}
	return c.attempt(ctx, key, r, time.Now())
}

// Lock waits until it has the lock on key or ctx ends; then the error is ctx.Err() and ErrHeld (or ErrBusy). A database that
// fails otherwise is not waited for: its error is returned after a few tries.
//
// Callers of one client are served in the order they came. Between clients there is no order unless they are Fair: whoever asks
// first when the key comes free gets it, but a client does not keep a key among its own callers for ever (Config.HandOvers).
//
// ctx bounds the waiting, not the lock: a lock that was got is held until Unlock, MaxHold or its loss, whatever becomes of ctx.
func (c *Client) Lock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	r, err := c.check(key, opts)
	if err != nil {
		return nil, err
	}
	if !c.janitor.enter() { // Close waits for us, so that what we are given at the last moment is given back
		return nil, fmt.Errorf("%w: lock %q", lease.ErrClosed, key)
	}
	defer c.janitor.leave()
	if c.fair != nil {
		return c.fair.wait(ctx, key, r)
	}
	return c.wait(ctx, key, r)
}

// passing reports whether err is something to wait for: a holder, or a database that has its hands full.
func passing(err error) bool {
	return errors.Is(err, lease.ErrHeld) || errors.Is(err, lease.ErrBusy) && !errors.Is(err, lease.ErrUnknown)
}

// Do runs f while holding the lock on key. The context f gets ends with ctx or with the lock, whichever is first. The error
// is f's, joined with ErrLost or ErrMaxHold if the lock ended before f returned. That the lock could not be given back at once
// is no error: f has done its work, and the client goes on trying.
func (c *Client) Do(ctx context.Context, key string, f func(ctx context.Context, l *Lock) error, opts ...Option) (err error) {
	l, err := c.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })()
	defer func() {
		if unlock := l.Unlock(ctx); errors.Is(unlock, ErrLost) || errors.Is(unlock, ErrMaxHold) {
			err = join(err, unlock)
		}
	}()
	return f(ctx, l)
}

func (c *Client) check(key string, opts []Option) (request, error) {
	if c.isClosed() {
		return request{}, fmt.Errorf("%w: lock %q", lease.ErrClosed, key)
	}
	if err := lease.CheckKey(key); err != nil {
		return request{}, err
	}
	return c.request(opts)
}

// attempt asks the store once, under an owner of its own.
func (c *Client) attempt(ctx context.Context, key string, r request, began time.Time) (*Lock, error) {
	return c.attemptAs(ctx, key, lease.NewOwner(), r, began)
}

func (c *Client) attemptAs(ctx context.Context, key string, owner lease.Owner, r request, began time.Time) (*Lock, error) {
	if !c.janitor.enter() {
		return nil, fmt.Errorf("%w: lock %q", lease.ErrClosed, key)
	}
	defer c.janitor.leave()
	req := lease.AcquireRequest{Key: key, Owner: owner, TTL: r.ttl, Note: r.note}
	sent := time.Now() // before sending: a slow reply must not stretch the lease
	answers, err := c.acquire(ctx, []lease.AcquireRequest{req})
	if err == nil && len(answers) != 1 {
		err = fmt.Errorf("%w: lock %q: %w: %d answers to one request", lease.ErrUnknown, key, lease.ErrCorrupt, len(answers))
	}
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		if errors.Is(err, lease.ErrUnknown) {
			c.janitor.cleanUp(key, req.Owner)
		}
		return nil, err
	}
	if a := answers[0]; a.Granted {
		return c.granted(ctx, req, a, r, sent, began)
	}
	if answers[0].Doubtful {
		c.janitor.cleanUp(key, req.Owner) // an earlier try of this request may yet be granted
	}
	return nil, c.contended(key, answers[0].Holder, r.internal)
}

// contended is the answer to who found key held.
func (c *Client) contended(key string, by lease.Holder, internal bool) error {
	held := &HeldError{Key: key, Note: by.Note, Remaining: by.Remaining}
	c.evictions.saw(key, by.Remaining)
	if h := c.cfg.Hooks.Contended; h != nil && !internal {
		h(key, held)
	}
	return held
}

// acquired tells of a lock that was got. A hook that panics takes it from its caller, who could not unlock it: it would be renewed for ever.
func (c *Client) acquired(l *Lock, waited time.Duration) {
	h := c.cfg.Hooks.Acquired
	if h == nil || l.quiet {
		return
	}
	told := false
	defer func() {
		if !told {
			c.abandon(l)
		}
	}()
	h(l.held.Key, l.held.Token, waited)
	told = true
}

// abandon ends a lock that nobody has in hand. The janitor frees the key.
func (c *Client) abandon(l *Lock) {
	if l.finish(ErrUnlocked) {
		c.janitor.cleanUp(l.held.Key, l.held.Owner)
	}
}

// granted makes a Lock of an answer, unless the lease cannot be trusted any more: the watchdog says why.
func (c *Client) granted(ctx context.Context, req lease.AcquireRequest, a lease.Acquired, r request, sent, began time.Time) (*Lock, error) {
	l := newLock(ctx, c, req, a, r, sent)
	err := c.keep(l, sent)
	if err == nil {
		c.runs.Granted(req.Key, a.Token, sent, time.Since(sent))
		c.evictions.forget(req.Key)
		c.acquired(l, time.Since(began))
		return l, nil
	}
	l.finish(ErrLost)
	c.janitor.cleanUp(req.Key, req.Owner)
	return nil, err
}

// keep begins to watch a lock, of a client that is open.
func (c *Client) keep(l *Lock, sent time.Time) error {
	if !c.add(l) {
		return fmt.Errorf("%w: lock %q", lease.ErrClosed, l.held.Key)
	}
	return c.dog.Keep(&l.held, sent)
}
