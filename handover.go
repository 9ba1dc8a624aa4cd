package rowlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/internal/waitq"
	"github.com/rowlockdb/rowlock/lease"
)

// handOn gives held to the next who waits for it in this process. left is what is still to be released: held itself if nobody
// waits who could use it, the zero Lease if it was handed over, or the lease of a waiter who had gone when the answer came.
func (c *Client) handOn(ctx context.Context, held lease.Lease) (left lease.Lease, err error) {
	passer, ok := seam.As[lease.Passer](c.store)
	if !ok {
		return held, nil
	}
	for left = held; ; {
		w := c.lines.Claim(held.Key)
		if w == nil {
			return left, nil
		}
		g, err := c.handOver(ctx, passer, left, w)
		switch {
		case errors.Is(err, lease.ErrMoved): // it was given up, and whoever is next has to ask where it is
			c.lines.Return(w)
			return lease.Lease{}, nil
		case err != nil:
			c.lines.Return(w)
			c.janitor.cleanUp(held.Key, left.Owner)
			c.janitor.cleanUp(held.Key, g.req.Owner)
			return left, err
		case !g.answer.Granted:
			c.lines.Return(w)
			return left, nil // lost, or the key's tokens have run out: its release says which
		case c.lines.Give(w, g):
			return lease.Lease{}, nil
		}
		left = lease.Lease{Key: held.Key, Owner: g.req.Owner, Token: g.answer.Token}
	}
}

// handOver asks the store, under an owner of its own for each attempt.
func (c *Client) handOver(ctx context.Context, p lease.Passer, from lease.Lease, w *waitq.Waiter[request, grant]) (grant, error) {
	g := grant{req: lease.AcquireRequest{Key: w.Key, Owner: lease.NewOwner(), TTL: w.Want.ttl, Note: w.Want.note}, sent: time.Now()}
	answers, err := p.HandOver(ctx, []lease.HandOver{{From: from, To: g.req}})
	if err == nil && len(answers) != 1 {
		err = fmt.Errorf("%w: hand over %q: %d answers to one request", lease.ErrCorrupt, w.Key, len(answers))
	}
	if err == nil {
		g.answer, err = answers[0], answers[0].Err
	}
	return g, err
}

// cameFree tells those who wait for a key that was released: another process's waiters with a hint, ours by calling them to bid.
// After a run, when they are held, they are not called before the others had their chance, if there are any.
func (c *Client) cameFree(key string, awaited, held bool) {
	if held && !awaited {
		ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
		awaited = c.isAwaited(ctx, key)
		cancel()
	}
	c.tellOthers(key, awaited)
	switch {
	case held && awaited:
		time.AfterFunc(c.room(), func() { c.lines.Resume(key) })
	case held:
		c.lines.Resume(key)
	default:
		c.lines.Call(key)
	}
}

// stayed has those of this process who wait for a key that could not be released see for themselves. The store is not asked who else waits:
// it hangs, or is down, and the caller of Unlock would have to wait for it once more.
func (c *Client) stayed(key string, held bool) {
	if held {
		c.lines.Resume(key)
		return
	}
	c.lines.Call(key)
}

// isAwaited reports whether other processes wait for key. It is so unless the store knows better.
func (c *Client) isAwaited(ctx context.Context, key string) bool {
	interest, ok := seam.As[lease.Interest](c.store)
	if !ok {
		return true
	}
	awaited, err := interest.Awaited(ctx, c.hints.process, []string{key})
	return err != nil || len(awaited) != 1 || awaited[0]
}

// call has those of this process who wait for key see whether it is free; "" is every key.
func (c *Client) call(key string) {
	switch {
	case c.fair != nil:
		c.fair.call(key)
	case key == "":
		c.poller.Now()
	default:
		c.lines.Call(key)
	}
}
