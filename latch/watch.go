package latch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// registry has a watch for each generation that this process waits for.
type registry struct {
	mu sync.Mutex
	at map[lease.Owner]*watch
}

// watch polls one generation for all its waiters.
type watch struct {
	s     *Latches
	row   rows.Row
	users int                // under the registry's mutex
	end   context.CancelFunc // when the last waiter has left
	now   chan struct{}      // has one if the next poll is due at once
	tells atomic.Bool        // a party of this process has counted down

	mu      sync.Mutex
	changed chan struct{} // closed when what follows changes
	seen    bool
	view    rows.View
	err     error // ends all waits
	trouble error // the last poll's, if it failed
}

// firstPause is the shortest time between two polls.
const firstPause = 5 * time.Millisecond

// join returns the watch of a row, and begins it for its first waiter.
func (s *Latches) join(row rows.Row) *watch {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	w := s.rows.at[row.ID]
	if w == nil {
		w = &watch{s: s, row: row, now: make(chan struct{}, 1), changed: make(chan struct{})}
		if s.rows.at == nil {
			s.rows.at = make(map[lease.Owner]*watch)
		}
		s.rows.at[row.ID] = w
		var ctx context.Context
		ctx, w.end = context.WithCancel(s.stopped)
		s.begins(func() { w.poll(ctx) }) // if closed, await says so
		s.hints.listen()
	}
	w.users++
	return w
}

func (s *Latches) part(w *watch) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	if w.users--; w.users == 0 {
		w.end()
		delete(s.rows.at, w.row.ID)
		if len(s.rows.at) == 0 {
			s.hints.idle()
		}
	}
}

// poke has a generation polled at once, or all if id is zero.
func (r *registry) poke(id lease.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, w := range r.at {
		if id.IsZero() || of == id {
			w.poke()
		}
	}
}

// counted is poke after a count of this process's own. It is false if nothing here watches: then
// the watch does not announce that the latch is open.
func (r *registry) counted(id lease.Owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.at[id]
	if w != nil {
		w.tells.Store(true)
		w.poke()
	}
	return w != nil
}

func (w *watch) poke() {
	select {
	case w.now <- struct{}{}:
	default:
	}
}

// await returns when done says so of what was read and confirmed, with what it says. What is final
// stays so, which is why the last poll of another waiter will do.
func (s *Latches) await(
	ctx context.Context, row rows.Row, done func(rows.View) (bool, error),
) (rows.View, error) {
	w := s.join(row)
	defer s.part(w)
	for {
		w.mu.Lock()
		seen, v, changed, err, trouble := w.seen, w.view, w.changed, w.err, w.trouble
		w.mu.Unlock()
		if err != nil {
			return v, err
		}
		if seen {
			if over, err := done(v); over {
				return v, err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return v, oneline.Join(ctx.Err(), trouble)
		case <-s.stopped.Done():
			return v, closed(string(row.Name))
		}
	}
}

// poll looks until ctx ends or nothing more can come. A pause is longer than the one before, up to
// Config.Poll.
func (w *watch) poll(ctx context.Context) {
	pauses := retry.Growing(firstPause, w.s.cfg.Poll, 0.5)
	pauses.Multiplier = 1.5
	for {
		v, err := w.look(ctx)
		if err == nil && of(w.row, v).open && w.tells.Load() {
			w.s.hints.announce(w.row)
		}
		if ctx.Err() != nil || w.publish(v, err) {
			return
		}
		if !retry.Sleep(ctx, gather) { // a thousand counts of this process are not a thousand polls
			return
		}
		timer := time.NewTimer(min(pauses.NextBackOff(), w.s.cfg.Poll))
		select {
		case <-w.now:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// look reads the row, does what is due, and confirms what waiters will be told.
func (w *watch) look(ctx context.Context) (v rows.View, err error) {
	for range looks {
		if v, err = w.s.look(ctx, w.row); err != nil || !v.Live {
			return v, err
		}
		if step := due(w.row, v); step != "" {
			if _, err := w.s.changed(ctx, step, w.row.Step(step)); err != nil {
				return v, err
			}
			w.s.hints.announce(w.row)
			continue
		}
		if !w.news(v) && v.Remaining > w.s.cfg.Keep/2 {
			return v, nil
		}
		if kept, err := w.s.keep(ctx, at(w.row, v)); kept || err != nil {
			return v, err
		}
	}
	return v, lease.ErrBusy
}

// milestone is what waiters are woken for.
type milestone struct {
	live  bool
	id    lease.Owner
	state int
	open  bool
}

func of(row rows.Row, v rows.View) milestone {
	open := row.Kind == rows.Latches && v.Live && v.Counted >= v.Parties
	return milestone{v.Live, v.ID, v.State, open}
}

func (w *watch) news(v rows.View) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.seen && of(w.row, v) != milestone{live: true, id: w.row.ID} ||
		w.seen && of(w.row, v) != of(w.row, w.view)
}

// publish notes what was read, wakes the waiters if it is news, and reports whether it is the last.
func (w *watch) publish(v rows.View, err error) (last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = err
	if err != nil && !sqlstore.IsRefusal(err) && !errors.Is(err, lease.ErrClosed) {
		return false // it may pass
	}
	m := of(w.row, v)
	if err != nil || !w.seen || m != of(w.row, w.view) {
		close(w.changed)
		w.changed = make(chan struct{})
	}
	w.err = err
	if err == nil {
		w.seen, w.view = true, v
	}
	return err != nil || !m.live || m.id != w.row.ID || m.open || m.state >= rows.BarrierDone
}
