package queue

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// attempt is one call in the queue. A call for several keys waits in the queue of one of them,
// which is held, and bids for all. No key is handed over to it, because it would have to give that
// key up again if another were held.
type attempt struct {
	q    *Attempts
	w    *waiter // the place is part of its first waiter, in one allocation
	call *Call
}

// Join takes a place in the queue of the first key that others wait for already, or else of the
// first key: a later call does not bid before earlier ones.
func (q *Attempts) Join(ctx context.Context, c *Call) (Waiter, bool, error) {
	if c.Any && len(c.Keys) > 1 {
		return q.joinAny(ctx, c)
	}
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
		q.cfg.Asker.Discard(ctx, p.Leave(ctx).Grant)
		return nil, false, err
	}
	return p, len(c.Keys) > 1 || !q.yields(w), nil
}

func (q *Attempts) join(key string, c *Call) (w *waiter, first bool) {
	return q.local.Join(key, attempt{q: q, call: c}, q.cfg.Asker.Watches(c), len(c.Keys) > 1)
}

// makeRoom lets other processes bid first if this one has spent its budget of one of the keys and
// another process waits for it.
func (p *attempt) makeRoom(ctx context.Context, began time.Time) error {
	for _, key := range p.call.Keys {
		if !p.q.budget.Spent(key, began) || p.q.budget.Of(key).Quiet(began, p.q.cfg.PollMax/4) ||
			!p.q.notify.Awaited(ctx, key) {
			continue
		}
		select {
		case <-time.After(p.q.room()):
			return nil
		case <-ctx.Done():
			return oneline.Join(p.q.cfg.Asker.Held(p), ctx.Err())
		case <-p.q.cfg.Asker.Closed:
			return Closed(p.call.Keys)
		}
	}
	return nil
}

// Attempt asks for the keys under fresh owners.
func (p *attempt) Attempt(ctx context.Context) (Grants, error) {
	return p.q.cfg.Asker.Ask(ctx, p.call, p.call.Requests())
}

// Lost stays in the queue of a key that is held, or goes to the queue of the first key that is. It
// bids once more if it is the first there, because of a release in between it would not have been
// told.
func (p *attempt) Lost(_ context.Context, err error) (again bool, failed error) {
	first, here := inTheWay(err, p.w.Key)
	if first == nil || here != nil {
		p.q.local.Lost(p.w)
		p.q.watch(p.w.Key, observedOf(here)) // without a holder the database is overloaded
		p.q.local.Notify(p.w.Key)
		return false, nil
	}
	p.q.local.Leave(p.w)
	if p.q.local.Len(p.w.Key) == 0 {
		p.q.notify.PassOn(p.w.Key) // this process may have been woken for it, and no other
	}
	p.w, again = p.q.join(first.Key, p.call)
	return again, nil
}

// inTheWay returns the first key that is held, and key itself if it is.
func inTheWay(err error, key string) (first, here *lease.HeldError) {
	for _, e := range flat(err) {
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

// flat returns the errors that are joined in err, or err alone.
func flat(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	return []error{err}
}

func (p *attempt) Awaits() string         { return p.w.Key }
func (p *attempt) Signals() <-chan signal { return p.w.Signal }
func (p *attempt) News() <-chan struct{}  { return p.w.News }

// Position counts the waiters of this process.
func (p *attempt) Position() (Position, bool) {
	o := p.q.poller.Last(p.w.Key)
	at := Position{Ahead: p.q.local.Ahead(p.w), Remaining: o.Remaining}
	at.Identity, at.Holder = lease.SplitNote(o.Note)
	return at, true
}

// Seen is what the last poll has read, unless this process has bid for the key since.
func (p *attempt) Seen() Seen { return p.q.seen(p.w.Key) }

func (q *Attempts) seen(key string) Seen {
	o := q.poller.Last(key)
	return Seen{
		Held: o.Polled && !o.Free && !o.Expired, Expired: o.Polled && o.Expired,
		Token: o.Token, Note: o.Note, Remaining: o.Remaining, Shared: o.Shared,
	}
}

// Won leaves the queue. The poller now and then polls a key that this process holds and others of
// it wait for: they will know sooner of its release.
func (p *attempt) Won(Grants) {
	if p.q.local.Won(p.w) {
		p.q.poller.Own(p.w.Key, observed{Note: p.call.Want.Note, Remaining: p.call.Want.TTL})
		p.q.local.Notify(p.w.Key)
	}
}

// Leave leaves the queue.
func (p *attempt) Leave(context.Context) signal { return p.q.local.Leave(p.w) }
