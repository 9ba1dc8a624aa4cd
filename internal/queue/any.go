package queue

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// anyAttempt is one call that wants any of several keys. It stands in the queues of all, and bids
// in one statement for those at the head of whose queues it stands: a later call does not overtake
// an earlier one. A key can be handed over to it.
type anyAttempt struct {
	q    *Attempts
	g    *group[attempt, Grants]
	call *Call
}

func (q *Attempts) joinAny(ctx context.Context, c *Call) (Waiter, bool, error) {
	began := time.Now()
	p := &anyAttempt{q: q, call: c}
	var first bool
	p.g, first = q.local.JoinAny(c.Keys, attempt{q: q, call: c}, q.cfg.Asker.Watches(c))
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
func (p *anyAttempt) makeRoom(ctx context.Context, began time.Time) error {
	for _, key := range p.call.Keys {
		if !p.q.budget.Spent(key, began) {
			return nil
		}
	}
	if !p.q.notify.Awaited(ctx, p.call.Keys[0]) {
		return nil
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

// Attempt asks for the keys under fresh owners.
func (p *anyAttempt) Attempt(ctx context.Context) (Grants, error) {
	keys := p.q.local.Heads(p.g)
	if len(keys) == 0 { // other processes bid first
		return Grants{}, p.q.cfg.Asker.Held(p)
	}
	return p.q.cfg.Asker.Ask(ctx, p.call, p.call.Some(keys))
}

// Lost stays in all queues. It has those keys polled for which it was to find out whether they are
// free: the others are polled already.
func (p *anyAttempt) Lost(_ context.Context, err error) (again bool, failed error) {
	held := make(map[string]*lease.HeldError)
	for _, e := range flat(err) {
		var h *lease.HeldError
		if errors.As(e, &h) {
			held[h.Key] = h
		}
	}
	for _, key := range p.q.local.LostAny(p.g) {
		p.q.watch(key, observedOf(held[key]))
		p.q.local.Notify(key)
	}
	return false, nil
}

// Awaits is a key that a poll has found expired, or else the one for which the fewest waiters stand
// before this one.
func (p *anyAttempt) Awaits() string {
	for _, key := range p.call.Keys {
		if o := p.q.poller.Last(key); o.Polled && o.Expired {
			return key
		}
	}
	key, _ := p.q.local.AheadAny(p.g)
	return key
}

func (p *anyAttempt) Signals() <-chan signal { return p.g.Signal }
func (p *anyAttempt) News() <-chan struct{}  { return p.g.News }

// Position counts the waiters of this process before the key that Awaits names.
func (p *anyAttempt) Position() (Position, bool) {
	_, ahead := p.q.local.AheadAny(p.g)
	o := p.q.poller.Last(p.Awaits())
	at := Position{Ahead: ahead, Remaining: o.Remaining}
	at.Identity, at.Holder = lease.SplitNote(o.Note)
	return at, true
}

// Seen is what the last poll has read of the key that Awaits names.
func (p *anyAttempt) Seen() Seen { return p.q.seen(p.Awaits()) }

// Won leaves all queues. What else was to be found free is left to the next waiters, of other
// processes if there are none here.
func (p *anyAttempt) Won(g Grants) {
	key := g.Each[0].Req.Key
	others, unused := p.q.local.WonAny(p.g, key)
	p.q.notify.Forget(key) // its holder will announce it
	if others {
		p.q.poller.Own(key, observed{Note: p.call.Want.Note, Remaining: p.call.Want.TTL})
		p.q.local.Notify(key)
	}
	p.passOn(unused)
}

// Leave leaves all queues.
func (p *anyAttempt) Leave(context.Context) signal {
	s, unused := p.q.local.LeaveAny(p.g)
	p.passOn(unused)
	return s
}

func (p *anyAttempt) passOn(keys []string) {
	for _, key := range keys {
		p.q.notify.PassOn(key)
	}
}
