package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// wait is one call on its way to its keys. It is a state machine: it asks, or it waits for a
// signal, which costs nothing.
type wait struct {
	Waiter
	asker   *Asker
	call    *Call
	began   time.Time
	lost    error // of the last attempt
	shown   Position
	record  *cycle.Call // among the calls that wait; nil before the first attempt was lost
	holder  Seen        // of the key that the call waited for last
	key     string
	expired lease.Token // the token of the lease of which Expired was told
	outage  time.Time   // since when no attempt has reached a server that takes writes, or zero
	intent
}

// Wait waits in q until the keys are granted, until ctx or the client ends, or until an attempt
// fails for another reason than a held key or an overloaded database.
func (a *Asker) Wait(ctx context.Context, q Queue, c *Call) (Grants, error) {
	if err := ctx.Err(); err != nil {
		return Grants{}, fmt.Errorf("rowlock: lock %q: %w", nameOf(c.Keys), err)
	}
	if c.Want.Shared {
		return a.waitToShare(ctx, q, c)
	}
	w, attempt, err := q.Join(ctx, c)
	if err != nil {
		return Grants{}, err
	}
	return a.stay(ctx, c, w, attempt)
}

// stay waits in the queue, and leaves it.
func (a *Asker) stay(ctx context.Context, c *Call, in Waiter, attempt bool) (Grants, error) {
	w := wait{asker: a, call: c, Waiter: in, began: time.Now()}
	panicked := true
	defer func() {
		if panicked { // in a hook: the waiter would be woken, and all behind it would wait for it
			a.Discard(ctx, in.Leave(ctx).Grant)
			w.end(ctx, false)
		}
	}()
	g, err := w.run(ctx, attempt)
	panicked = false
	if err == nil {
		in.Won(ctx, g)
	} else if s := in.Leave(ctx); s.Given { // a grant that races with the end of ctx wins
		g, err = s.Grant, nil
	}
	if err == nil && c.Want.Shared && !g.Shared {
		g, err = a.Downgrade(ctx, g)
	}
	if w.record != nil {
		w.end(ctx, err == nil)
	}
	return g, err
}

func (w *wait) run(ctx context.Context, attempt bool) (Grants, error) {
	for {
		for attempt {
			g, err := w.Attempt(ctx)
			if err == nil {
				return g, nil
			}
			if attempt, err = w.again(ctx, err); err != nil {
				return Grants{}, err
			}
		}
		w.begin(ctx)
		s, err := w.stand(ctx)
		switch {
		case err != nil:
			return Grants{}, err
		case s.Given:
			return s.Grant, nil
		}
		w.overdue(ctx)
		attempt = true
	}
}

// begin is called when the call begins to wait, or goes on: others may wait for what it holds.
func (w *wait) begin(ctx context.Context) {
	// A reader that holds a lock goes on asking behind others of its process: what it waits for there
	// is in no record, and a cycle of it would last for ever.
	if w.lost != nil || w.call.Want.Shared && w.call.Want.Holder != nil {
		w.refused(ctx, w.lost)
	}
	if w.record != nil {
		return
	}
	w.record = &cycle.Call{Holder: w.call.Want.Holder}
	idle := ctx.Value(cycle.Idle{})
	if w.record.Holder == nil && idle == any(cycle.Idle{Candidate: true}) {
		return // no caller waits
	}
	w.record.Since = w.began
	w.asker.waiting.Add(1)
	if w.call.Any || w.record.Holder == nil && idle != nil {
		return // recorded, it would be in cycles that are none: the release of any key ends its wait
	}
	// It may wait for one of several keys to share while other readers share another. A reader of one
	// key waits for nothing else: if others share that, it waits behind a writer's intent.
	if w.call.Want.Shared && len(w.call.Keys) > 1 {
		w.record.Shares = w.call.Keys
	} else {
		w.record.Wants = w.call.Keys
	}
	if w.record.Holder != nil {
		w.record.Broken = make(chan error, 1)
	}
	w.asker.Cycles.Begin(w.record)
}

// end ends what begin began.
func (w *wait) end(ctx context.Context, granted bool) {
	w.unintend(ctx)
	if w.record == nil || w.record.Since.IsZero() {
		return
	}
	w.asker.waiting.Add(-1)
	if !w.call.Any {
		w.asker.Cycles.End(w.record, granted)
	}
}

// again says how the call goes on after an attempt that ended with err.
func (w *wait) again(ctx context.Context, err error) (attempt bool, failed error) {
	passing := ctx.Err() == nil && w.outlasts(err) || passing(err)
	switch {
	case passing && ctx.Err() == nil:
		w.lost = err
		return w.Lost(ctx, err)
	case !passing && ctx.Err() != nil:
		// The attempt was cut short: what the one before found still stands.
		return false, oneline.Join(w.asker.named(w.lost), cut(ctx, err))
	}
	return false, cut(ctx, err)
}

// outlasts reports whether a call that has waited for a holder goes on waiting after err: a
// failover must not send away all that wait. After its TTL the server is not worth waiting for, and
// a call that has not waited yet is told at once.
func (w *wait) outlasts(err error) bool {
	if w.record == nil || !adapter.IsOutage(err) {
		w.outage = time.Time{}
		return false
	}
	w.outage = cmp.Or(w.outage, time.Now())
	return time.Since(w.outage) < w.call.Want.TTL
}

// cut adds to err that ctx has ended, if it has and err does not say so.
func cut(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return oneline.Join(err, ctx.Err())
	}
	return err
}

// stand waits for a signal.
func (w *wait) stand(ctx context.Context) (signal, error) {
	var late <-chan time.Time
	if !w.outage.IsZero() {
		timer := time.NewTimer(max(0, time.Until(w.outage.Add(w.call.Want.TTL))))
		defer timer.Stop()
		late = timer.C
	}
	wake, news := w.Signals() // here, because a waiter may have none before it has lost an attempt
	for {
		w.show()
		w.compare(ctx)
		select {
		case s := <-wake:
			return s, nil
		case <-w.ticks: // nil, and never, unless readers are involved
			if w.ticked(ctx) {
				return signal{}, nil
			}
		case <-late: // no poll has woken the call: ask whether the outage is over
			return signal{}, nil
		case <-news: // nil, and never, unless the caller watches
		case <-ctx.Done():
			return signal{}, oneline.Join(w.held(), ctx.Err())
		case err := <-w.record.Broken: // nil, and never, if the call holds nothing
			return signal{}, err
		case <-w.asker.Closed:
			return signal{}, Closed([]string{w.Awaits()})
		}
	}
}

// held is what is known of the holder. A call for any of several keys is told of each whose row
// another transaction keeps locked.
func (w *wait) held() error {
	held := w.asker.Held(w.Waiter)
	switch {
	case w.lost == nil || errors.Is(w.lost, lease.ErrHeld):
		return oneline.Join(append([]error{held}, w.blocked(held.Key)...)...)
	case held.Blocked != "":
		return fmt.Errorf("%w (%s)", w.lost, held.Blocked)
	}
	return w.lost
}

// blocked are the call's other keys of which an eviction has found what keeps them locked, if any
// key ends the wait.
func (w *wait) blocked(but string) (all []error) {
	if !w.call.Any {
		return nil
	}
	for _, key := range w.call.Keys {
		if why := w.asker.Evictions.Why(key); why != "" && key != but {
			all = append(all, &lease.HeldError{Key: key, Blocked: why})
		}
	}
	return all
}

// Held says what a waiter knows of the holder of its key, and what keeps its row locked.
func (a *Asker) Held(p Waiter) *lease.HeldError {
	at, _ := p.Position()
	key := p.Awaits()
	return &lease.HeldError{
		Key: key, Identity: at.Identity, Note: at.Holder, Remaining: max(0, at.Remaining),
		Blocked: a.Evictions.Why(key),
	}
}

// named is err with what an eviction has found since to keep the keys locked that it tells of. It
// changes no error that a hook may have kept.
func (a *Asker) named(err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range several.Unwrap() {
			all = append(all, a.named(e))
		}
		return oneline.Join(all...)
	}
	held, ok := err.(*lease.HeldError)
	if !ok || held.Blocked != "" {
		return err
	}
	told := *held
	told.Blocked = a.Evictions.Why(held.Key)
	return &told
}

// show tells a caller that watches of its position, if that has changed.
func (w *wait) show() {
	if w.call.Want.Show == nil {
		return
	}
	now, known := w.Position()
	last := w.shown
	same := now.Ahead == last.Ahead && now.Identity == last.Identity && now.Holder == last.Holder
	if !known || last.Since > 0 && same {
		return
	}
	now.Remaining, now.Since = max(0, now.Remaining), max(1, time.Since(w.began))
	w.shown = now
	w.call.Want.Show(w.Awaits(), now)
}

// compare tells of another holder than at the poll before. One that awaits another key begins anew.
func (w *wait) compare(ctx context.Context) {
	changed := w.asker.Hooks.HolderChanged
	if changed == nil {
		return
	}
	now, last, key := w.Seen(), w.holder, w.Awaits()
	if !now.Held {
		return
	}
	w.holder = now
	if w.key != key {
		w.key = key
		return
	}
	if now.Token != last.Token || now.Token == 0 && now.Note != last.Note {
		changed(ctx, key, now.Token, now.holder(key))
	}
}

// overdue tells of a lease that ran out, once for each.
func (w *wait) overdue(ctx context.Context) {
	expired := w.asker.Hooks.Expired
	if expired == nil {
		return
	}
	now, key := w.Seen(), w.Awaits()
	if now.Expired && !lease.Lapses(now.Note) && (now.Token != w.expired || now.Token == 0) {
		w.expired = now.Token
		expired(ctx, key, now.Token, now.holder(key))
	}
}
