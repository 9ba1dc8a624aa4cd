package wlock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// refresh is how often a waiter is registered anew, because a master forgets it when it moves or
// after 60 s.
const refresh = 10 * time.Second

// watch is what waits for events with one number.
type watch struct {
	Lock
	news chan struct{} // has room for one
	// over says that no caller waits any more: a lock that is granted to it still is released.
	over bool
}

// heard is called with each event. Those with a negative number tell an owner that its lock has
// expired, which its own clock has told it before.
func (c *Client) heard(m *frame.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[m.WatchID]
	switch {
	case w == nil || m.WatchID < 0 || m.Key != c.tenant+"_"+w.Key:
	case w.over && m.Event == frame.Acquired && !c.closed:
		l := w.Lock
		l.Token = lease.Token(m.Token)
		// The token is that of the queue's grant: if the owner has acquired since, it is dead.
		c.work.Go(func() { _, _, _ = c.ReleaseLock(c.ctx, l) })
	default:
		w.wake()
	}
}

// wake has all waiters register anew: the master of some group is another, or has lost its queue.
func (c *Client) wake() {
	for _, w := range c.watches {
		w.wake()
	}
}

func (w *watch) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (c *Client) watch(l Lock) (id int64, w *watch) {
	w = &watch{Lock: l, news: make(chan struct{}, 1)}
	id = c.sessions.Add(1)
	c.know(func() { c.watches[id] = w })
	return id, w
}

// unwatch keeps the number for as long as a server may remember it: there is no message that ends a
// wait.
func (c *Client) unwatch(id int64, w *watch, remembered time.Duration) {
	c.know(func() { w.over = true })
	time.AfterFunc(remembered, func() { c.know(func() { delete(c.watches, id) }) })
}

// WaitLock waits in the server's queue until the lock is granted, or ctx ends. Heavier waiters go
// first; of read-write locks the queue is by age alone. While a group has no master it waits on.
//
// An event only wakes it: what it returns was granted in answer to a request of its own, so that
// Sent is known.
func (c *Client) WaitLock(ctx context.Context, a Ask) (Grant, error) {
	q, err := a.request(ctx)
	if err != nil {
		return Grant{}, err
	}
	id, w := c.watch(a.Lock)
	defer c.unwatch(id, w, time.Minute)
	q.Blocked, q.WatchID, q.Timeout = 1, id, math.MaxInt64
	unknown := false
	for {
		r, err := c.ask(ctx, q, a.late())
		unknown = unknown || r.unknown
		switch {
		case err != nil && (ctx.Err() != nil || c.ctx.Err() != nil):
			return Grant{Unknown: true}, fmt.Errorf("%w: %w", lease.ErrUnknown, err)
		case err != nil:
			continue // no master for Patience
		case r.Status != frame.Wait:
			r.unknown = unknown
			g, err := a.granted(r)
			if !errors.Is(err, ErrRefused) {
				return g, err
			}
		}
		select {
		case <-ctx.Done():
			// It may be granted at this moment, and the event is answered with a release.
			return Grant{Unknown: true}, fmt.Errorf("%w: wlock: %w", ErrRefused, ctx.Err())
		case <-c.ctx.Done(): // it may be granted all the same
			return Grant{Unknown: true}, fmt.Errorf("%w: %w", lease.ErrUnknown, errClosed)
		case <-w.news:
		case <-time.After(refresh):
		}
	}
}

// Watch returns nil when the key of a mutex may be free, and an error when ctx ends. It may return
// in vain, and may miss a release: ask from time to time.
func (c *Client) Watch(ctx context.Context, key string) error {
	l := Lock{Key: key, Owner: lease.NewOwner()}
	q, err := l.request(ctx, frame.Watch)
	if err != nil {
		return err
	}
	id, w := c.watch(l)
	defer c.unwatch(id, w, 0)
	// A known token that no other is above: a smaller one would drop the whole queue of the key.
	q.Token, q.Watch, q.WatchID, q.Timeout = math.MaxInt64, 1, id, 2*refresh.Milliseconds()
	q.Expire, q.Weight = 1, 1
	for {
		if _, err := c.ask(ctx, q, nil); err != nil && (ctx.Err() != nil || c.ctx.Err() != nil) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ctx.Done():
			return errClosed
		case <-w.news:
			return nil
		case <-time.After(refresh):
		}
	}
}
