package queue

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// ticket is the place of a call in the queue of one key.
type ticket struct {
	lease.Ticket
	q      *Tickets
	call   *Call
	signal chan signal   // its call's
	news   chan struct{} // the position has changed; nil unless the caller watches

	// Guarded by the queue's mutex:
	joined  time.Time // of the last heartbeat; zero: one is due
	asked   time.Time // when the position was last polled
	place   lease.QueuePosition
	changed time.Time // when place last changed
	unsure  bool      // a heartbeat may yet be written, or a claim be granted
	beating bool      // a heartbeat is under way, which may be written too late
	gaveUp  bool
}

func (t *ticket) id() string         { return string(t.Owner[:]) }
func (t *ticket) lease() lease.Lease { return lease.Lease{Key: t.Key, Owner: t.Owner} }

// attempt does what the last poll has found to do: it confirms a lease that was passed to the
// ticket, or claims the key.
func (t *ticket) attempt(ctx context.Context) (Grants, error) {
	t.q.mu.Lock()
	p := t.place
	t.q.mu.Unlock()
	switch {
	case IsClosed(t.q.cfg.Asker.Closed):
		return Grants{}, Closed([]string{t.Key})
	case p.Err != nil:
		return Grants{}, p.Err
	case p.Granted:
		return t.confirm(ctx, p.Token)
	}
	return t.claim(ctx)
}

// claim claims the key. If the outcome is unknown, the owner stays the ticket's: the key may be
// passed to it all the same, and the orphan cleaner would release it under its holder.
func (t *ticket) claim(ctx context.Context) (Grants, error) {
	sent := time.Now()
	answer := t.q.store.Claim(ctx, []lease.AcquireRequest{t.AcquireRequest})[0]
	if answer.Unknown || errors.Is(answer.Err, lease.ErrUnknown) {
		t.q.mu.Lock()
		t.unsure = true
		t.q.mu.Unlock()
	}
	g := Grants{Each: []Grant{{t.AcquireRequest, answer}}, Sent: sent}
	switch {
	case answer.Err != nil:
		return Grants{}, answer.Err
	case answer.Granted:
		return g, nil
	}
	return Grants{}, t.q.cfg.Asker.contended(ctx, t.call, g)
}

// join takes tickets. They are in the books before they are in the queues, because from then on the
// keys can be passed to them.
func (q *Tickets) join(ctx context.Context, tickets ...*ticket) error {
	wanted := make([]lease.Ticket, len(tickets))
	q.mu.Lock()
	for i, t := range tickets {
		t.AcquireRequest = t.call.Want.Request(t.Key)
		t.Priority = t.call.Want.Priority
		t.joined = time.Now()
		t.changed = t.joined
		q.waiting[t.id()] = t
		wanted[i] = t.Ticket
	}
	q.mu.Unlock()
	unknown, err := q.store.Join(ctx, wanted)
	q.mu.Lock()
	defer q.mu.Unlock()
	passing := passing(err)
	for _, t := range tickets {
		// After an error it may have been made all the same, and may yet be.
		if t.unsure = unknown || err != nil && !passing; passing {
			t.joined = time.Time{} // the poller joins it
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
