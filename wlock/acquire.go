package wlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func (s *Store) acquire(ctx context.Context, q lease.AcquireRequest) (lease.Acquired, error) {
	if err := q.Check(); err != nil {
		return lease.Acquired{}, err
	}
	e, err := s.enter(ctx, attempt{q.Key, q.Owner})
	if err != nil {
		return lease.Acquired{}, err
	}
	defer s.leave(e)
	if e.live && time.Now().Before(e.until) {
		return s.repeat(ctx, e, q)
	}
	s.ends(e)
	if err := e.bound(q.TTL); err != nil {
		return lease.Acquired{}, err
	}
	g, err := s.c.TryLock(ctx, s.ask(e, q.TTL))
	if g.Unknown || errors.Is(err, lease.ErrUnknown) {
		s.stray(e, q.TTL)
	}
	switch {
	case errors.Is(err, ErrRefused):
		return lease.Acquired{Holder: s.holder(q.Key), Locked: e.least > 0, Unknown: e.least > 0}, nil
	case err != nil:
		return lease.Acquired{}, err
	case g.Token >= lease.MaxToken:
		e.newest = g.Token
		_, _ = s.free(ctx, e)
		return lease.Acquired{}, fmt.Errorf("%w: wlock: %q", lease.ErrTokenExhausted, q.Key)
	case !s.holds(e, g, q.TTL, q.Note):
		e.newest, e.released = g.Token, false
		if _, err := s.free(ctx, e); err != nil {
			return lease.Acquired{}, err
		}
		return lease.Acquired{}, fmt.Errorf("%w: wlock: acquire %q: the answer took longer than the TTL of %s",
			lease.ErrBusy, q.Key, q.TTL)
	}
	return lease.Acquired{Granted: true, Token: e.first, Unknown: e.least > 0}, nil
}

// repeat extends the lease, because the caller counts the TTL from this request.
func (s *Store) repeat(ctx context.Context, e *entry, q lease.AcquireRequest) (lease.Acquired, error) {
	r, err := s.prolong(ctx, e, q.TTL)
	switch {
	case err != nil:
		return lease.Acquired{}, err
	case r.Outcome != lease.Extended:
		return lease.Acquired{Holder: s.holder(q.Key), Locked: e.least > 0, Unknown: e.least > 0}, nil
	}
	return lease.Acquired{Granted: true, Token: e.first, Unknown: e.least > 0}, nil
}

// ask is for longer than the holder relies on the lease: by that much servers' clocks may differ.
func (s *Store) ask(e *entry, ttl time.Duration) Ask {
	if ttl > 0 {
		ttl += s.c.cfg.Skew
	}
	return Ask{Lock: e.lock(e.newest), TTL: ttl, Late: s.late(e.attempt)}
}

// guess is for how long a lock of another process is said to last: servers tell no time. 0 would
// say that it has expired, and have waiters poll without a pause.
const guess = time.Second

// holder describes a holder of this process. No other is known, because servers keep no notes.
func (s *Store) holder(key string) lease.Holder {
	if v, _, held := s.seen(key); held {
		return lease.Holder{Note: v.note, Remaining: time.Until(v.until)}
	}
	return lease.Holder{Remaining: guess}
}

func (s *Store) renew(ctx context.Context, q lease.RenewRequest) (lease.Renewed, error) {
	e, err := s.enter(ctx, attempt{q.Key, q.Owner})
	if err != nil {
		return lease.Renewed{}, err
	}
	defer s.leave(e)
	if q.Token != e.first {
		return lease.Renewed{Outcome: lease.Lost}, nil
	}
	return s.prolong(ctx, e, q.TTL)
}

// prolong has a lease last for ttl from now. If that is less than it would have, it is relied on
// for no longer, whatever the answer: the request may be carried out in any case.
func (s *Store) prolong(ctx context.Context, e *entry, ttl time.Duration) (lease.Renewed, error) {
	for range 2 { // one refusal is the word of one server, which may be of the past
		left := time.Until(e.until)
		if !e.live || left <= 0 {
			return lease.Renewed{Outcome: lease.Lost}, nil
		}
		if err := e.bound(ttl); err != nil {
			return lease.Renewed{}, err
		}
		if ttl > 0 && ttl < left {
			s.mu.Lock()
			e.until = time.Now().Add(ttl)
			e.view.until = e.until
			s.mu.Unlock()
		}
		bound, cancel := context.WithDeadline(ctx, e.until)
		g, err := s.extend(bound, s.ask(e, ttl))
		cancel()
		if g.Unknown || errors.Is(err, lease.ErrUnknown) {
			s.stray(e, ttl)
		}
		switch {
		case err == nil && s.holds(e, g, ttl, ""):
			return lease.Renewed{Outcome: lease.Extended}, nil
		case err == nil: // the key may have had another holder before the answer came
			e.newest = g.Token
			s.giveUp(e)
			return lease.Renewed{Outcome: lease.Lost}, nil
		case !errors.Is(err, ErrRefused):
			return lease.Renewed{}, err
		}
	}
	s.giveUp(e)
	return lease.Renewed{Outcome: lease.Lost}, nil
}

// giveUp ends a lost lease, and has released what a server may still have of it.
func (s *Store) giveUp(e *entry) {
	s.ends(e)
	at := e.attempt
	s.c.after(func() {
		e, err := s.enter(s.c.ctx, at)
		if err != nil {
			return
		}
		defer s.leave(e)
		if !e.live && !e.released {
			_, _ = s.free(s.c.ctx, e)
		}
	})
}
