package queue

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// anyTickets is one call that waits in order for any of several keys. It has a ticket for each.
// When it has one key it takes the other tickets back, and passes on what they were passed
// meanwhile.
type anyTickets struct {
	q      *Tickets
	call   *Call
	all    []*ticket
	signal chan signal
	news   chan struct{}
	queued bool
}

// newAnyTickets returns tickets that share their signals. There is room for two of each.
func newAnyTickets(q *Tickets, c *Call) *anyTickets {
	ts := &anyTickets{q: q, call: c, signal: make(chan signal, 2*len(c.Keys))}
	if q.cfg.Asker.Watches(c) {
		ts.news = make(chan struct{}, 1)
	}
	for _, key := range c.Keys {
		t := &ticket{q: q, call: c, signal: ts.signal, news: ts.news}
		t.Key = key
		ts.all = append(ts.all, t)
	}
	return ts
}

// Attempt does for each ticket what the last poll has found to do, until one has its key. Before
// the tickets are taken it claims key by key under owners of their own.
func (ts *anyTickets) Attempt(ctx context.Context) (Grants, error) {
	if !ts.queued {
		return ts.q.cfg.Asker.Ask(ctx, ts.call, ts.call.Some(ts.call.Keys))
	}
	err := error(ts.q.cfg.Asker.Held(ts))
	for _, t := range ts.all {
		place, due := t.due()
		if !due {
			continue
		}
		var g Grants
		switch g, err = t.attempt(ctx, place); {
		case err == nil:
			return g, nil
		case !passing(err):
			return Grants{}, err
		}
	}
	return Grants{}, err
}

// due returns what the last poll has read of the ticket, and whether there is something to do.
func (t *ticket) due() (lease.QueuePosition, bool) {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	p := t.place
	free := !t.asked.IsZero() && p.Ahead == 0 && p.Remaining <= 0 && !p.Missing
	return p, p.Granted || p.Err != nil || free
}

// Lost takes the tickets, or has their positions polled again.
func (ts *anyTickets) Lost(ctx context.Context, err error) (again bool, failed error) {
	if !ts.queued {
		ts.queued = true
		if failed := ts.q.join(ctx, ts.all...); failed != nil {
			return false, cut(ctx, oneline.Join(err, failed))
		}
		ts.q.notify.Listen()
	}
	for _, t := range ts.all {
		ts.q.poller.Watch(t.id(), observed{})
	}
	return false, nil
}

// first is the ticket that a poll has found nearest to the head of its queue.
func (ts *anyTickets) first() *ticket {
	ts.q.mu.Lock()
	defer ts.q.mu.Unlock()
	first := ts.all[0]
	for _, t := range ts.all[1:] {
		if !t.asked.IsZero() && (first.asked.IsZero() || t.place.Ahead < first.place.Ahead) {
			first = t
		}
	}
	return first
}

func (ts *anyTickets) Awaits() string             { return ts.first().Key }
func (ts *anyTickets) Signals() <-chan signal     { return ts.signal }
func (ts *anyTickets) News() <-chan struct{}      { return ts.news }
func (ts *anyTickets) Position() (Position, bool) { return ts.first().Position() }
func (ts *anyTickets) Seen() Seen                 { return ts.first().Seen() }

// Won takes back the tickets that were not used.
func (ts *anyTickets) Won(ctx context.Context, g Grants) {
	if ts.queued {
		ts.end(g)
		ts.takeBack(ctx, g)
	}
}

// Leave leaves no ticket behind, nor a key that was passed to one meanwhile. A grant within this
// process at this very moment is returned instead, and a second one goes to the next waiter.
func (ts *anyTickets) Leave(ctx context.Context) (s signal) {
	if !ts.queued {
		return s
	}
	s = ts.end(Grants{})
	ts.takeBack(ctx, s.Grant)
	return s
}

// end closes the books on all tickets but used, which is the grant's if there is one. It returns a
// grant that came at this moment, if there was none.
func (ts *anyTickets) end(used Grants) (s signal) {
	ts.q.mu.Lock()
	defer ts.q.mu.Unlock()
	for len(used.Each) == 0 && len(ts.signal) > 0 && !s.Given {
		s = <-ts.signal
	}
	if s.Given {
		used = s.Grant
	}
	for _, t := range ts.all {
		delete(ts.q.waiting, t.id())
		t.gaveUp = !t.is(used)
	}
	return s
}

func (t *ticket) is(g Grants) bool { return len(g.Each) > 0 && g.Each[0].Req.Owner == t.Owner }

// takeBack takes back every ticket but the one that was used. After that no key can be passed to
// them, so that a read finds those that were: they go to the next waiters.
func (ts *anyTickets) takeBack(ctx context.Context, used Grants) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adapter.Timeout)
	defer cancel()
	var left []lease.Lease
	for _, t := range ts.all {
		if !t.is(used) {
			left = append(left, t.lease())
		}
	}
	err := ts.q.store.Leave(ctx, left)
	if err == nil {
		err = ts.passOn(ctx, left)
	}
	var orphans []lease.Lease
	for _, t := range ts.all {
		t.q.mu.Lock()
		unsure := t.unsure
		t.q.mu.Unlock()
		if !t.is(used) && (err != nil || unsure) {
			orphans = append(orphans, t.lease())
		}
	}
	ts.q.cfg.Asker.Orphans.AddLeases(orphans...)
}

// passOn gives up those of left that have their keys.
func (ts *anyTickets) passOn(ctx context.Context, left []lease.Lease) error {
	owners := make(map[lease.Owner]bool, len(left))
	keys := make([]string, len(left))
	for i, l := range left {
		owners[l.Owner], keys[i] = true, l.Key
	}
	rows, err := ts.q.store.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return err
	}
	var passed []lease.Lease
	for _, r := range rows {
		if owners[r.Owner] {
			passed = append(passed, lease.Lease{Key: r.Key, Owner: r.Owner})
		}
	}
	if len(passed) > 0 {
		ts.q.cfg.Asker.GiveUp(ctx, passed)
	}
	return nil
}
