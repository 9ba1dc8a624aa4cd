package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// inOrder is one call that waits in order for one key, or for any of several. It has a ticket for
// each. When it has one key it takes the other tickets back, and passes on what they were passed
// meanwhile.
type inOrder struct {
	q      *Tickets
	call   *Call
	all    []*ticket
	signal chan signal
	news   chan struct{} // nil unless the caller watches
	queued bool          // the tickets may be in the store
}

// Join returns a waiter that asks first, and takes tickets only if that attempt is lost. The call
// has one key or wants any: a fair client locks several one after the other. There is room for two
// signals of each ticket: a grant and a call to ask.
func (q *Tickets) Join(_ context.Context, c *Call) (Waiter, bool, error) {
	w := &inOrder{q: q, call: c, signal: make(chan signal, 2*len(c.Keys))}
	if q.cfg.Asker.Watches(c) {
		w.news = make(chan struct{}, 1)
	}
	for _, key := range c.Keys {
		t := &ticket{q: q, call: c, signal: w.signal, news: w.news}
		t.Key = key
		w.all = append(w.all, t)
	}
	return w, true, nil
}

// Attempt does for each ticket what the last poll has found to do, until one has its key. If there
// was nothing, as after an outage, the first ticket asks. Before the tickets are taken it claims
// the keys under owners of their own, because the outcome of that claim may be unknown.
func (w *inOrder) Attempt(ctx context.Context) (g Grants, err error) {
	if !w.queued {
		return w.q.cfg.Asker.Ask(ctx, w.call, w.call.Requests())
	}
	due := slices.DeleteFunc(slices.Clone(w.all), func(t *ticket) bool { return !t.due() })
	if len(due) == 0 {
		due = append(due, w.first())
	}
	for _, t := range due {
		if g, err = t.attempt(ctx); err == nil || !passing(err) {
			return g, err
		}
	}
	return Grants{}, err
}

// due reports whether the last poll has found something to do.
func (t *ticket) due() bool {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	p := t.place
	free := !t.asked.IsZero() && p.Ahead == 0 && p.Remaining <= 0 && !p.Missing
	return p.Granted || p.Err != nil || free
}

// Lost takes the tickets, or has their positions polled again.
func (w *inOrder) Lost(ctx context.Context, err error) (again bool, failed error) {
	var o observed
	if held := (*lease.HeldError)(nil); len(w.all) == 1 && errors.As(err, &held) {
		o = observedOf(held)
	}
	if !w.queued {
		w.queued = true
		w.all[0].place = lease.QueuePosition{Remaining: o.Remaining, Note: o.Note}
		if failed := w.q.join(ctx, w.all...); failed != nil {
			return false, cut(ctx, oneline.Join(err, failed))
		}
		w.q.notify.Listen()
	}
	for _, t := range w.all {
		w.q.poller.Watch(t.id(), o)
	}
	return false, nil
}

// first is the ticket that a poll has found nearest to the head of its queue.
func (w *inOrder) first() *ticket {
	w.q.mu.Lock()
	defer w.q.mu.Unlock()
	first := w.all[0]
	for _, t := range w.all[1:] {
		if !t.asked.IsZero() && (first.asked.IsZero() || t.place.Ahead < first.place.Ahead) {
			first = t
		}
	}
	return first
}

func (w *inOrder) Signals() (<-chan signal, <-chan struct{}) { return w.signal, w.news }

func (w *inOrder) Awaits() string             { return w.first().Key }
func (w *inOrder) Position() (Position, bool) { return w.first().Position() }

// Seen is what the last poll has read of the key that Awaits names, and whether readers hold any.
func (w *inOrder) Seen() Seen {
	seen := w.first().Seen()
	seen.Shared = slices.ContainsFunc(w.all, func(t *ticket) bool { return t.Seen().Shared })
	return seen
}

// Won takes back the tickets that were not used.
func (w *inOrder) Won(ctx context.Context, g Grants) { w.end(ctx, g) }

// Leave leaves no ticket behind, nor a key that was passed to one meanwhile. A grant within this
// process at this very moment is returned instead, and a second one goes to the next waiter.
func (w *inOrder) Leave(ctx context.Context) signal { return w.end(ctx, Grants{}) }

// end closes the books on all tickets but used, which is the grant's if there is one, and takes
// them back. It returns a grant that came at this moment, if there was none.
func (w *inOrder) end(ctx context.Context, used Grants) (s signal) {
	if !w.queued {
		return s
	}
	var left, unsure []lease.Lease
	w.q.mu.Lock()
	for len(used.Each) == 0 && len(w.signal) > 0 && !s.Given {
		if s = <-w.signal; s.Given {
			used = s.Grant
		}
	}
	for _, t := range w.all {
		delete(w.q.waiting, t.id())
		t.unsure = t.unsure || t.beating
		t.gaveUp = len(used.Each) == 0 || used.Each[0].Req.Owner != t.Owner
		switch {
		case t.gaveUp && t.unsure:
			unsure = append(unsure, t.lease())
		case t.unsure: // its owner is cleaned up after the release
			used.Each[0].Answer.Unknown = true
		}
		if t.gaveUp {
			left = append(left, t.lease())
		}
	}
	w.q.mu.Unlock()
	if len(left) > 0 {
		w.takeBack(ctx, left, unsure)
	}
	return s
}

// takeBack takes tickets back. After that no key can be passed to them, so that a read finds those
// that were: they go to the next waiters.
func (w *inOrder) takeBack(ctx context.Context, left, unsure []lease.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adapter.Timeout)
	defer cancel()
	err := w.q.store.Leave(ctx, left)
	if err == nil {
		err = w.passOn(ctx, left)
	}
	if err != nil {
		unsure = left
	}
	w.q.cfg.Asker.Orphans.AddLeases(unsure...)
}

// passOn gives up those of left that have their keys.
func (w *inOrder) passOn(ctx context.Context, left []lease.Lease) error {
	owners := make(map[lease.Owner]bool, len(left))
	keys := make([]string, len(left))
	for i, l := range left {
		owners[l.Owner], keys[i] = true, l.Key
	}
	rows, err := w.q.store.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
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
		w.q.cfg.Asker.GiveUp(ctx, passed)
	}
	return nil
}
