package queue

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// waiter is one call in the queue of a key. A call for several keys waits in the queue of one of
// them, which is held, and asks for all. No key is handed over to it, because it would have to give
// that key up again if another were held.
type waiter struct {
	q    *Attempts
	call *Call
	key  string
	// signal has room for one. It is nil until an attempt is lost.
	signal chan signal
	news   chan struct{} // the position may have changed; nil unless the caller watches

	gone  bool       // it wants the key no more; a hand-over to it may be under way
	any   *anyWaiter // of which it is a member, or nil
	woken bool       // a member was made to ask by a release or a poll
}

// asksOnly reports whether the waiter is woken like any other, but a key is never handed to it.
func (w *waiter) asksOnly() bool { return w.any == nil && len(w.call.Keys) > 1 }

// Join puts a call into the queue of its key.
func (q *Attempts) Join(ctx context.Context, c *Call) (Waiter, bool, error) {
	if c.Any && len(c.Keys) > 1 {
		return q.joinAny(ctx, c)
	}
	w := &waiter{q: q, call: c}
	e := q.keys.join(w, time.Now(), !q.notify.wakes.Load())
	switch {
	case e.yielded:
		q.watch(w.key, observed{})
	case e.spent != nil:
		if err := q.makeRoom(ctx, w, e.spent); err != nil {
			q.cfg.Asker.Discard(ctx, w.Leave(ctx).Grant)
			return nil, false, err
		}
		q.keys.cancelWake(w.key)
	}
	return w, e.first && !e.yielded, nil
}

// makeRoom lets other processes ask first if one waits for one of the keys, of which this process
// has spent its budget.
func (q *Attempts) makeRoom(ctx context.Context, w Waiter, spent []string) error {
	for _, key := range spent {
		if !q.store.AnyAwaited(ctx, q.notify.process, key) {
			continue
		}
		select {
		case <-time.After(q.room()):
			return nil
		case <-ctx.Done():
			return oneline.Join(q.cfg.Asker.Held(w), ctx.Err())
		case <-q.cfg.Asker.Closed:
			return Closed([]string{w.Awaits()})
		}
	}
	return nil
}

// Attempt asks for the keys under fresh owners.
func (w *waiter) Attempt(ctx context.Context) (Grants, error) {
	return w.q.cfg.Asker.Ask(ctx, w.call, w.call.Requests())
}

// Lost stays in the queue of a key that is held, or goes to the queue of the first key that is. It
// asks once more if it is the first there, because of a release in between it would not have been
// told.
func (w *waiter) Lost(_ context.Context, err error) (again bool, failed error) {
	first, here := inTheWay(err, w.key)
	if first == nil || here != nil {
		w.q.keys.lost(w)
		w.q.watch(w.key, observedOf(here)) // without a holder the database is overloaded
		w.q.keys.moved(w.key)
		return false, nil
	}
	w.q.keys.leave(w)
	if w.q.keys.len(w.key) == 0 {
		w.q.notify.PassOn(w.key) // this process may have been woken for it, and no other
	}
	return w.q.keys.move(w, first.Key), nil
}

func (w *waiter) Awaits() string { return w.key }

func (w *waiter) Signals() (<-chan signal, <-chan struct{}) { return w.signal, w.news }

// Position counts the waiters of this process.
func (w *waiter) Position() (Position, bool) { return w.q.position(w.key, w), true }

func (q *Attempts) position(key string, w *waiter) Position {
	o := q.poller.Last(key)
	at := Position{Ahead: q.keys.ahead(w), Remaining: o.Remaining}
	at.Identity, at.Holder = lease.SplitNote(o.Note)
	return at
}

// Seen is what the last poll has read, unless this process has asked for the key since.
func (w *waiter) Seen() Seen { return w.q.seen(w.key) }

func (q *Attempts) seen(key string) Seen {
	o := q.poller.Last(key)
	return Seen{
		Held: o.Polled && !o.Free && !o.Expired, Expired: o.Polled && o.Expired,
		Token: o.Token, Note: o.Note, Remaining: o.Remaining, Shared: o.Shared,
	}
}

// Won leaves the queue. The poller now and then polls a key that this process holds and others of
// it wait for: they will know sooner of its release.
func (w *waiter) Won(context.Context, Grants) {
	if w.q.keys.won(w) {
		w.q.poller.Own(w.key, observed{Note: w.call.Want.Note, Remaining: w.call.Want.TTL})
		w.q.keys.moved(w.key)
	}
}

// Leave leaves the queue.
func (w *waiter) Leave(context.Context) signal { return w.q.keys.leave(w) }
