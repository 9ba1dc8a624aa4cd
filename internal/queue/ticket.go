package queue

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// ticket is one call that waits in order for one key.
type ticket struct {
	lease.Ticket
	q      *Tickets
	call   *Call
	signal chan signal   // has room for a grant and a call to ask
	news   chan struct{} // the position has changed; nil unless the caller watches

	// Guarded by the queue's mutex:
	queued  bool      // the ticket may be in the store
	joined  time.Time // of the last heartbeat; zero: one is due
	asked   time.Time // when the position was last polled
	place   lease.QueuePosition
	changed time.Time // when place last changed
	unsure  bool      // a heartbeat may yet be written
	gaveUp  bool
}

func (t *ticket) id() string         { return string(t.Owner[:]) }
func (t *ticket) lease() lease.Lease { return lease.Lease{Key: t.Key, Owner: t.Owner} }

// Join returns a waiter that asks first, and takes a ticket only if that attempt is lost. The call
// has one key: a fair client locks several one after the other.
func (q *Tickets) Join(_ context.Context, c *Call) (Waiter, bool, error) {
	if c.Any && len(c.Keys) > 1 {
		return newAnyTickets(q, c), true, nil
	}
	t := &ticket{q: q, call: c, signal: make(chan signal, 2)}
	t.Key = c.Keys[0]
	if q.cfg.Asker.Watches(c) {
		t.news = make(chan struct{}, 1)
	}
	return t, true, nil
}

// Attempt does what the last poll has found to do: it confirms a lease that was passed to the
// ticket, or claims the key. Before the ticket is taken it claims the key under an owner of its
// own, because the outcome of that claim may be unknown.
func (t *ticket) Attempt(ctx context.Context) (Grants, error) {
	if !t.queued {
		return t.q.cfg.Asker.Ask(ctx, t.call, t.call.Requests())
	}
	t.q.mu.Lock()
	p := t.place
	t.q.mu.Unlock()
	return t.attempt(ctx, p)
}

func (t *ticket) attempt(ctx context.Context, p lease.QueuePosition) (Grants, error) {
	switch {
	case p.Err != nil:
		return Grants{}, p.Err
	case p.Granted:
		return t.confirm(ctx, p.Token)
	}
	return t.q.cfg.Asker.Ask(ctx, t.call, []lease.AcquireRequest{t.AcquireRequest})
}

// Lost takes the ticket, or has its position polled again.
func (t *ticket) Lost(ctx context.Context, err error) (again bool, failed error) {
	var held *lease.HeldError
	_ = errors.As(err, &held)
	o := observedOf(held)
	if !t.queued {
		t.place = lease.QueuePosition{Remaining: o.Remaining, Note: o.Note}
		if failed := t.q.join(ctx, t); failed != nil {
			return false, cut(ctx, oneline.Join(err, failed))
		}
		t.q.notify.Listen()
	}
	t.q.poller.Watch(t.id(), o)
	return false, nil
}

// join takes tickets. They are in the books before they are in the queues, because from then on the
// keys can be passed to them.
func (q *Tickets) join(ctx context.Context, tickets ...*ticket) error {
	wanted := make([]lease.Ticket, len(tickets))
	q.mu.Lock()
	for i, t := range tickets {
		t.AcquireRequest = t.call.Want.Request(t.Key)
		t.Priority = t.call.Want.Priority
		t.queued, t.joined = true, time.Now()
		t.changed = t.joined
		q.waiting[t.id()] = t
		wanted[i] = t.Ticket
	}
	q.mu.Unlock()
	err := q.store.Join(ctx, wanted)
	q.mu.Lock()
	defer q.mu.Unlock()
	passing := passing(err)
	for _, t := range tickets {
		switch {
		case passing:
			t.joined = time.Time{} // the poller joins it
		case err != nil:
			t.unsure = true // it may have been made all the same, and may yet be
		}
	}
	if passing {
		return nil
	}
	return err
}

// confirm renews the lease that another process has passed to the ticket, as a poll has read. A
// read proves nothing: the commit that passed it may wait for a replica still, and a failover would
// forget it. A renewal is a commit after it, and is acknowledged; and the lease then ends a TTL
// after a moment that is known here.
func (t *ticket) confirm(ctx context.Context, token lease.Token) (Grants, error) {
	if IsClosed(t.q.cfg.Asker.Closed) {
		return Grants{}, Closed([]string{t.Key})
	}
	held := lease.Lease{Key: t.Key, Owner: t.Owner, Token: token}
	sent := time.Now()
	renewed := t.q.store.Renew(ctx, []lease.RenewRequest{{Lease: held, TTL: t.TTL}})[0]
	switch {
	case renewed.Err != nil: // the lease may be there: Leave passes it on
		return Grants{}, renewed.Err
	case renewed.Outcome != lease.Extended: // locked, or lost since: the next poll says which
		return Grants{}, &lease.HeldError{Key: t.Key}
	}
	return t.grants(token, sent), nil
}

func (t *ticket) grants(token lease.Token, sent time.Time) Grants {
	return Grants{
		Each: []Grant{{
			Req: t.AcquireRequest, Answer: lease.Acquired{Granted: true, Token: token},
		}},
		Sent: sent, HandedOver: true,
	}
}

// note keeps what a poll has read.
func (t *ticket) note(p lease.QueuePosition, asked time.Time) {
	if p.Missing {
		t.joined = time.Time{}
	}
	changed := p.Ahead != t.place.Ahead || p.Note != t.place.Note
	if changed {
		t.changed = asked
	}
	// The first poll is news, whatever it has read.
	if t.news != nil && (changed || p.Token != t.place.Token || t.asked.IsZero()) {
		select {
		case t.news <- struct{}{}:
		default: // the last news was not read yet
		}
	}
	t.place, t.asked = p, asked
}

func (t *ticket) Awaits() string         { return t.Key }
func (t *ticket) Signals() <-chan signal { return t.signal }
func (t *ticket) News() <-chan struct{}  { return t.news }

// Position counts the waiters of all processes.
func (t *ticket) Position() (Position, bool) {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	p := t.place
	at := Position{Ahead: p.Ahead, Remaining: p.Remaining}
	at.Identity, at.Holder = lease.SplitNote(p.Note)
	return at, !t.asked.IsZero()
}

// Seen is what the last poll has read. A lease that was passed to the ticket is no other holder's.
// Of a lease that has run out the note alone tells: that of a released key is empty.
func (t *ticket) Seen() Seen {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	p := t.place
	polled := !t.asked.IsZero() && !p.Granted && p.Err == nil
	return Seen{
		Held: polled && p.Remaining > 0, Expired: polled && p.Remaining <= 0 && p.Note != "",
		Token: p.Token, Note: p.Note, Remaining: p.Remaining, Shared: polled && p.Shared,
	}
}

// Won ends a ticket that was used up.
func (t *ticket) Won(context.Context, Grants) { t.end(false) }

// Leave leaves no ticket behind, nor a key that was passed to it meanwhile: that goes to the next.
// A grant within this process at this very moment is returned instead.
func (t *ticket) Leave(ctx context.Context) signal {
	s, unsure := t.end(true)
	if s.Given || !t.queued {
		return s
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adapter.Timeout)
	defer cancel()
	err := t.q.store.Leave(ctx, []lease.Lease{t.lease()})
	if err == nil {
		t.q.cfg.Asker.GiveUp(ctx, []lease.Lease{t.lease()})
	}
	if err != nil || unsure {
		t.q.cfg.Asker.Orphans.AddLeases(t.lease())
	}
	return s
}

// end closes the books on a ticket. It returns a grant that came at this moment if the call is
// leaving, and whether a heartbeat may yet be written. All of it is one step, because a heartbeat
// under way asks afterwards whether the ticket's owner has the key.
func (t *ticket) end(leaving bool) (s signal, unsure bool) {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	delete(t.q.waiting, t.id())
	for leaving && len(t.signal) > 0 && !s.Given {
		s = <-t.signal
	}
	t.gaveUp = leaving && !s.Given
	return s, t.unsure
}
