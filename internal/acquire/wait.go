package acquire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/waitq"
	"github.com/rowlockdb/rowlock/lease"
)

// Queue is where calls wait.
type Queue interface {
	// Join takes a place. bid says that the call bids at once. An error leaves nothing behind.
	Join(ctx context.Context, c *Call) (p Place, bid bool, err error)
}

// Place is one call's place in a queue.
type Place interface {
	// Bid asks for the keys.
	Bid(ctx context.Context) (Grants, error)
	// Lost goes on waiting after a bid that ended with err, which is Passing. again says that the
	// call bids again at once.
	Lost(ctx context.Context, err error) (again bool, failed error)
	// Awaits is the key that the call waits for, one of several.
	Awaits() string
	// Signals wakes the call. News, which may be nil, says that Position may have changed.
	Signals() <-chan waitq.Signal[Grants]
	News() <-chan struct{}
	// Position is known once the place was polled.
	Position() (p Position, known bool)
	// Won ends the place after a grant.
	Won()
	// Leave ends the place without a grant. If the keys were handed over at this very moment, it
	// returns the grant: a grant that races with cancellation wins.
	Leave(ctx context.Context) waitq.Signal[Grants]
}

// wait is one call on its way to its keys. It is a state machine: it bids, or it waits for a
// signal, which costs nothing.
type wait struct {
	place  Place
	call   *Call
	closed <-chan struct{}
	began  time.Time
	lost   error // of the last bid
	shown  Position
}

// Wait waits in q until the keys are granted, until ctx or the client ends, or until a bid fails
// for another reason than a held key or an overloaded database.
func (a *Asker) Wait(ctx context.Context, q Queue, c *Call) (Grants, error) {
	if err := ctx.Err(); err != nil {
		return Grants{}, fmt.Errorf("rowlock: lock %q: %w", Name(c.Keys), err)
	}
	w := wait{call: c, closed: a.Closed, began: time.Now()}
	place, bid, err := q.Join(ctx, c)
	if err != nil {
		return Grants{}, err
	}
	w.place = place
	panicked := true
	defer func() {
		if panicked { // in a hook: the place would be woken, and all behind it would wait for it
			a.abandon(place.Leave(ctx))
		}
	}()
	g, err := w.run(ctx, bid)
	panicked = false
	if err == nil {
		place.Won()
		return g, nil
	}
	if s := place.Leave(ctx); s.Given {
		return s.Grant, nil
	}
	return Grants{}, err
}

// abandon leaves to the orphan cleaner what no caller will use.
func (a *Asker) abandon(s waitq.Signal[Grants]) {
	for i := range s.Grant.Reqs {
		a.Orphans.Add(s.Grant.Reqs[i].Key, s.Grant.Reqs[i].Owner)
	}
}

func (w *wait) run(ctx context.Context, bid bool) (Grants, error) {
	for {
		for bid {
			g, err := w.place.Bid(ctx)
			if err == nil {
				return g, nil
			}
			if bid, err = w.again(ctx, err); err != nil {
				return Grants{}, err
			}
		}
		s, err := w.stand(ctx)
		if err != nil || s.Given {
			return s.Grant, err
		}
		bid = true
	}
}

// again says how the call goes on after a bid that ended with err.
func (w *wait) again(ctx context.Context, err error) (bid bool, failed error) {
	passing := Passing(err)
	switch {
	case passing && ctx.Err() == nil:
		w.lost = err
		return w.place.Lost(ctx, err)
	case !passing && ctx.Err() != nil:
		// The bid was cut short: what the bid before it found still stands.
		return false, oneline.Join(w.lost, Cut(ctx, err))
	}
	return false, Cut(ctx, err)
}

// Cut adds to err that ctx has ended, if it has and err does not say so.
func Cut(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return oneline.Join(err, ctx.Err())
	}
	return err
}

// stand waits for a signal.
func (w *wait) stand(ctx context.Context) (s waitq.Signal[Grants], err error) {
	for {
		w.show()
		select {
		case s = <-w.place.Signals():
			return s, nil
		case <-w.place.News(): // nil, and never, unless the caller watches
		case <-ctx.Done():
			return s, oneline.Join(w.held(), ctx.Err())
		case <-w.closed:
			return s, Closed([]string{w.place.Awaits()})
		}
	}
}

// held is what is known of the holder.
func (w *wait) held() error {
	if w.lost != nil && !errors.Is(w.lost, lease.ErrHeld) {
		return w.lost
	}
	return Held(w.place)
}

// Held says what a place knows of the holder of its key.
func Held(p Place) *lease.HeldError {
	at, _ := p.Position()
	return &lease.HeldError{Key: p.Awaits(), Note: at.Holder, Remaining: max(0, at.Remaining)}
}

// show tells a caller that watches of its position, if that has changed.
func (w *wait) show() {
	if w.call.Want.Show == nil {
		return
	}
	now, known := w.place.Position()
	last := w.shown
	if !known || last.Since > 0 && now.Ahead == last.Ahead && now.Holder == last.Holder {
		return
	}
	now.Remaining, now.Since = max(0, now.Remaining), max(1, time.Since(w.began))
	w.shown = now
	w.call.Want.Show(w.place.Awaits(), now)
}
