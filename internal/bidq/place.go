package bidq

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/waitq"
	"github.com/rowlockdb/rowlock/lease"
)

// place is one call in the queue. A call for several keys waits in the queue of one of them, which
// is held, and bids for all. No key is handed over to it, because it would have to give that key up
// again if another were held.
type place struct {
	q    *Queue
	w    *waiter // the place is part of its first waiter, in one allocation
	call *acquire.Call
}

// Join takes a place in the queue of the first key that others wait for already, or else of the
// first key: a later call does not bid before earlier ones.
func (q *Queue) Join(ctx context.Context, c *acquire.Call) (acquire.Place, bool, error) {
	began := time.Now()
	behind := c.Keys[0]
	for _, key := range c.Keys {
		if q.local.Len(key) > 0 {
			behind = key
			break
		}
	}
	w, first := q.join(behind, c)
	p := &w.Want
	p.w = w
	if !first {
		return p, false, nil
	}
	if err := p.makeRoom(ctx, began); err != nil {
		p.Leave(ctx)
		return nil, false, err
	}
	return p, len(c.Keys) > 1 || !q.yields(w), nil
}

func (q *Queue) join(key string, c *acquire.Call) (w *waiter, first bool) {
	return q.local.Join(key, place{q: q, call: c}, c.Want.Show != nil, len(c.Keys) > 1)
}

// makeRoom lets other processes bid first if this one has spent its budget of one of the keys and
// another process waits for it.
func (p *place) makeRoom(ctx context.Context, began time.Time) error {
	for _, key := range p.call.Keys {
		if !p.q.budget.Spent(key, began) || !p.q.hints.Awaited(ctx, key) {
			continue
		}
		select {
		case <-time.After(p.q.room()):
			return nil
		case <-ctx.Done():
			return oneline.Join(acquire.Held(p), ctx.Err())
		}
	}
	return nil
}

// Bid asks for the keys under fresh owners.
func (p *place) Bid(ctx context.Context) (acquire.Grants, error) {
	return p.q.cfg.Asker.Ask(ctx, p.call, p.call.Requests())
}

// Lost stays in the queue of a key that is held, or goes to the queue of the first key that is. It
// bids once more if it is the first there, because of a release in between it would not have been
// told.
func (p *place) Lost(_ context.Context, err error) (again bool, failed error) {
	first, here := inTheWay(err, p.w.Key)
	if first == nil || here != nil {
		p.q.watch(p.w.Key, observed(here)) // without a holder the database is overloaded
		p.q.local.Lost(p.w)
		p.q.local.Notify(p.w.Key)
		return false, nil
	}
	p.q.local.Leave(p.w)
	if p.q.local.Len(p.w.Key) == 0 {
		p.q.hints.PassOn(p.w.Key) // this process may have been woken for it, and no other
	}
	p.w, again = p.q.join(first.Key, p.call)
	return again, nil
}

// inTheWay returns the first key that is held, and key itself if it is.
func inTheWay(err error, key string) (first, here *lease.HeldError) {
	all := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		all = several.Unwrap()
	}
	for _, e := range all {
		var held *lease.HeldError
		if !errors.As(e, &held) {
			continue
		}
		if first == nil {
			first = held
		}
		if held.Key == key {
			here = held
		}
	}
	return first, here
}

// observed is what a lost bid tells of the holder.
func observed(held *lease.HeldError) waitq.Observed {
	if held == nil {
		return waitq.Observed{}
	}
	return waitq.Observed{Remaining: held.Remaining, Note: held.Note}
}

func (p *place) Awaits() string         { return p.w.Key }
func (p *place) Signals() <-chan signal { return p.w.Signal }
func (p *place) News() <-chan struct{}  { return p.w.News }

// Position counts the waiters of this process.
func (p *place) Position() (acquire.Position, bool) {
	o := p.q.poller.Last(p.w.Key)
	return acquire.Position{Ahead: p.q.local.Ahead(p.w), Holder: o.Note, Remaining: o.Remaining}, true
}

// Won leaves the queue. The poller now and then polls a key that this process holds and others of
// it wait for: they will know sooner of its release.
func (p *place) Won() {
	if p.q.local.Won(p.w) {
		p.q.poller.Own(p.w.Key, waitq.Observed{Note: p.call.Want.Note, Remaining: p.call.Want.TTL})
		p.q.local.Notify(p.w.Key)
	}
}

// Leave leaves the queue.
func (p *place) Leave(context.Context) signal { return p.q.local.Leave(p.w) }
