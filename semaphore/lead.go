package semaphore

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/oneline"
)

// wait waits behind the other calls of this process.
func (s *Semaphore) wait(ctx context.Context, n int) (*Permit, error) {
	w := &waiter{ctx: ctx, n: n, signal: make(chan signal, 2)}
	if s.line.join(w) {
		return s.lead(ctx, w)
	}
	var got signal
	select {
	case got = <-w.signal:
	case <-ctx.Done():
		if s.line.leave(w) {
			return nil, s.gaveUp(ctx, w)
		}
		got = <-w.signal // a permit that was granted at this moment is the caller's
	}
	if got.ends() {
		return got.p, got.err
	}
	return s.lead(ctx, w)
}

func (s *Semaphore) gaveUp(ctx context.Context, w *waiter) error {
	return oneline.Join(&FullError{Name: s.name, Wanted: w.n, Limit: s.seen()}, ctx.Err())
}

// lead asks as the one waiter of all processes, until w has its permit. Then another waiter leads.
// If a hook panics, the caller gets no permit.
func (s *Semaphore) lead(ctx context.Context, w *waiter) (*Permit, error) {
	got, calm := signal{}, false
	defer func() {
		if !calm && got.p != nil {
			s.release(ctx, got.p)
		}
	}()
	err := func() error {
		defer func() {
			var turn *rowlock.Lock
			if got, turn = s.line.end(w); turn != nil {
				_ = turn.Unlock(ctx)
			}
		}()
		return s.leads(ctx, w)
	}()
	if calm = true; got.ends() {
		return got.p, got.err
	}
	return nil, err
}

func (s *Semaphore) leads(ctx context.Context, w *waiter) error {
	if ctx.Err() != nil {
		return s.gaveUp(ctx, w)
	}
	asks := s.line.mayBeFree() // unless it has become free, a slot that is released here comes unasked
	if s.line.inTurn() == nil {
		asks = true
		if done, _, err := s.serve(ctx, w); done {
			return err
		}
	}
	return s.leadInTurn(ctx, w, asks)
}

// leadInTurn returns nil when w has its permit.
func (s *Semaphore) leadInTurn(ctx context.Context, w *waiter, asks bool) error {
	hints := s.locks.SlotHints(s.of(s.seen()))
	defer hints.Stop()
	pauses := pauses()
	for {
		begun, err := s.takeTurn(ctx, w, hints)
		if err != nil {
			return err
		}
		for more := asks || begun; more; {
			hints.Register(ctx)
			var done bool
			if done, more, err = s.serve(ctx, w); done {
				return err
			}
		}
		woken := s.pause(ctx, s.line.inTurn(), hints, pauses, w)
		if woken == ended && (w.got.ends() || ctx.Err() != nil) {
			return s.gaveUp(ctx, w)
		}
		asks = woken != freed || s.line.mayBeFree()
	}
}

// takeTurn returns when this process has the turn, which a waiter before this one may have taken.
// It may have ended by force, a database that was away, or the end of the client. begun says that
// another turn has begun.
func (s *Semaphore) takeTurn(ctx context.Context, w *waiter, hints *rowlock.SlotHints) (
	begun bool, err error,
) {
	awaited := func() bool { return hints.Awaited(ctx, QueueKey(s.name)) }
	over, goesOn := s.line.renew(awaited)
	if goesOn {
		return false, nil
	}
	if over != nil {
		_ = over.Unlock(ctx)
	}
	if _, err := s.known(ctx); err != nil { // nothing is written for a limit that is refused
		return false, err
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	if !s.line.awaits(w, stop) {
		return true, nil
	}
	turn, err := s.lockTurn(waiting)
	if err == nil && !s.line.begins(w, turn) {
		_ = turn.Unlock(ctx)
	}
	return true, err
}

// serve asks for the first waiter and for those behind it, or else for the first alone. done says
// that the wait of w has ended. more says that more slots may be free.
func (s *Semaphore) serve(ctx context.Context, w *waiter) (done, more bool, err error) {
	select {
	case <-s.freed: // it is counted already, and would have w ask once more in vain
	default:
	}
	some := s.line.ask(w, s.seen())
	if len(some) == 0 {
		done, _ = s.line.asked(w, nil)
		return done, false, nil
	}
	panicked := true
	defer func() {
		if panicked { // in a hook
			s.line.asked(w, some)
		}
	}()
	if err = s.askFor(ctx, some); err != nil && len(some) > 1 && ctx.Err() == nil {
		err = s.askFor(ctx, some[:1])
	}
	failed := err != nil && !passing(err)
	if failed && ctx.Err() == nil { // as it would have failed for the first by itself
		s.line.give(some[0], signal{err: err})
	}
	panicked = false
	done, more = s.line.asked(w, some)
	return done || failed && ctx.Err() != nil, more && err == nil || failed, err
}

// askFor gives waiters permits that it asks for together.
func (s *Semaphore) askFor(ctx context.Context, some []*waiter) error {
	calls, n := callsOf(some)
	all, err := s.tryFor(ctx, n, calls)
	var full *FullError
	switch {
	case err == nil:
		s.line.granted(n)
		s.giveOut(ctx, some, all)
	case errors.As(err, &full):
		s.line.refused(full.free)
	}
	return err
}

func callsOf(some []*waiter) (calls []rowlock.SlotCall, n int) {
	calls = make([]rowlock.SlotCall, len(some))
	for i, w := range some {
		calls[i] = rowlock.SlotCall{Ctx: w.ctx, N: w.n}
		n += w.n
	}
	return calls, n
}

// giveOut gives waiters their permits, and then releases those of waiters that have left.
func (s *Semaphore) giveOut(ctx context.Context, some []*waiter, all []*Permit) {
	var left []*Permit
	for i, p := range all {
		if !s.line.give(some[i], signal{p: p}) {
			left = append(left, p)
		}
	}
	s.release(ctx, left...)
}

// release releases permits that no caller gets, each even if a hook of another's release panics.
func (s *Semaphore) release(ctx context.Context, permits ...*Permit) {
	for _, p := range permits {
		defer func() { _ = p.Release(context.WithoutCancel(ctx)) }()
	}
}

// pass releases p, and hands its slots to waiters.
func (s *Semaphore) pass(ctx context.Context, p *Permit, some []*waiter) error {
	left, err := s.handOn(ctx, p, some)
	if left > 0 {
		s.line.released(left)
		s.wake()
	}
	return err
}

// handOn returns how many of the slots no waiter was given.
func (s *Semaphore) handOn(ctx context.Context, p *Permit, some []*waiter) (left int, err error) {
	var late []*Permit
	defer func() { // also after a panic in a hook; of what was given this changes nothing
		for _, w := range some {
			s.line.unclaim(w)
		}
		s.release(ctx, late...)
	}()
	left = len(p.slots)
	calls, _ := callsOf(some)
	for i, w := range some {
		calls[i].Give = func(got *rowlock.Locks) {
			left -= w.n
			if next := newPermit(s, got); !s.line.give(w, signal{p: next}) {
				late = append(late, next)
			}
		}
	}
	err = s.locks.PassSlots(ctx, s.of(s.seen()), p.locks, calls, s.locking...)
	return left, err
}
