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

// anyPlace is one call that wants any of several keys. It stands in the queues of all, and bids in
// one statement for those at the head of whose queues it stands: a later call does not overtake an
// earlier one. A key can be handed over to it.
type anyPlace struct {
	q    *Queue
	g    *waitq.Group[place, acquire.Grants]
	call *acquire.Call
}

func (q *Queue) joinAny(ctx context.Context, c *acquire.Call) (acquire.Place, bool, error) {
	began := time.Now()
	p := &anyPlace{q: q, call: c}
	var first bool
	p.g, first = q.local.JoinAny(c.Keys, place{q: q, call: c}, q.cfg.Asker.Watches(c))
	if !first {
		return p, false, nil
	}
	if err := p.makeRoom(ctx, began); err != nil {
		q.cfg.Asker.Discard(ctx, p.Leave(ctx).Grant)
		return nil, false, err
	}
	return p, true, nil
}

// makeRoom lets other processes bid first if this one has spent its budget of all keys, and another
// process waits for the first. As long as one key is not spent, the call may bid.
func (p *anyPlace) makeRoom(ctx context.Context, began time.Time) error {
	for _, key := range p.call.Keys {
		if !p.q.budget.Spent(key, began) {
			return nil
		}
	}
	if !p.q.hints.Awaited(ctx, p.call.Keys[0]) {
		return nil
	}
	select {
	case <-time.After(p.q.room()):
		return nil
	case <-ctx.Done():
		return oneline.Join(p.q.cfg.Asker.Held(p), ctx.Err())
	case <-p.q.cfg.Asker.Closed:
		return acquire.Closed(p.call.Keys)
	}
}

// Bid asks for the keys under fresh owners.
func (p *anyPlace) Bid(ctx context.Context) (acquire.Grants, error) {
	keys := p.q.local.Heads(p.g)
	if len(keys) == 0 { // other processes bid first
		return acquire.Grants{}, p.q.cfg.Asker.Held(p)
	}
	return p.q.cfg.Asker.Ask(ctx, p.call, p.call.Some(keys))
}

// Lost stays in all queues. It has those keys polled for which it was to find out whether they are
// free: the others are polled already.
func (p *anyPlace) Lost(_ context.Context, err error) (again bool, failed error) {
	held := make(map[string]*lease.HeldError)
	for _, e := range flat(err) {
		var h *lease.HeldError
		if errors.As(e, &h) {
			held[h.Key] = h
		}
	}
	for _, key := range p.q.local.LostAny(p.g) {
		p.q.watch(key, acquire.Observed(held[key]))
		p.q.local.Notify(key)
	}
	return false, nil
}

// Awaits is a key that a poll has found expired, or else the one for which the fewest waiters stand
// before this one.
func (p *anyPlace) Awaits() string {
	for _, key := range p.call.Keys {
		if o := p.q.poller.Last(key); o.Polled && o.Expired {
			return key
		}
	}
	key, _ := p.q.local.AheadAny(p.g)
	return key
}

func (p *anyPlace) Signals() <-chan signal { return p.g.Signal }
func (p *anyPlace) News() <-chan struct{}  { return p.g.News }

// Position counts the waiters of this process before the key that Awaits names.
func (p *anyPlace) Position() (acquire.Position, bool) {
	_, ahead := p.q.local.AheadAny(p.g)
	o := p.q.poller.Last(p.Awaits())
	at := acquire.Position{Ahead: ahead, Remaining: o.Remaining}
	at.Identity, at.Holder = lease.SplitNote(o.Note)
	return at, true
}

// Seen is what the last poll has read of the key that Awaits names.
func (p *anyPlace) Seen() acquire.Seen { return p.q.seen(p.Awaits()) }

// Won leaves all queues. What else was to be found free is left to the next waiters, of other
// processes if there are none here.
func (p *anyPlace) Won(g acquire.Grants) {
	key := g.Each[0].Req.Key
	others, unused := p.q.local.WonAny(p.g, key)
	p.q.hints.Forget(key) // its holder will announce it
	if others {
		p.q.poller.Own(key, waitq.Observed{Note: p.call.Want.Note, Remaining: p.call.Want.TTL})
		p.q.local.Notify(key)
	}
	p.passOn(unused)
}

// Leave leaves all queues.
func (p *anyPlace) Leave(context.Context) signal {
	s, unused := p.q.local.LeaveAny(p.g)
	p.passOn(unused)
	return s
}

func (p *anyPlace) passOn(keys []string) {
	for _, key := range keys {
		p.q.hints.PassOn(key)
	}
}
