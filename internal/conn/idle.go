package conn

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

const (
	// usualIdle is how long a connection stays open that runs nothing.
	usualIdle = time.Minute
	// old is how many halves of that time a connection has run nothing for when it is closed, or
	// proved before its next use.
	old = 2
	// proof bounds the question whether the server is still there.
	proof = time.Second
)

// free takes from the idle connections the one to run an op of a kind: the last used, because it is
// the warmest. Renewals prefer the keeper, so that it stays open while anything is held. One that
// has no session is taken if no other is idle, and not if it must be open.
func (s *Set[T]) free(k Kind, open bool) *pinned[T] {
	best := -1
	for i, p := range s.idle {
		switch {
		case k == Acquire && p.keeper || open && p.session == nil:
		case best < 0, p.session != nil && !(k == Renew && s.idle[best].keeper && s.idle[best].session != nil):
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	p := s.idle[best]
	s.idle = slices.Delete(s.idle, best, best+1)
	return p
}

// age closes idle connections that have become old, twice in the time that they may be idle. One
// that acquires stays, so that a lock need not dial, and gets through while the application has
// every other connection of its pool. In a pool with a limit the keeper stays too, because the
// application could have its place when a renewal is due.
func (s *Set[T]) age() {
	limited := s.limited()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.ager.Reset(s.cfg.Idle / 2)
	stays := false // even if another is busy: it may hang
	for _, p := range slices.Backward(slices.Clone(s.idle)) {
		p.unused++
		switch {
		case p.session == nil, p.keeper && limited:
		case !stays && !p.keeper:
			stays = true
		case p.unused >= old:
			p.retires = true
			s.rouse(p)
		}
	}
}

// limited reports whether the application can use up the pool, as far as is known.
func (s *Set[T]) limited() bool {
	pool, ok := s.cfg.DB.(interface{ Stats() sql.DBStats })
	return !ok || pool.Stats().MaxOpenConnections > 0
}

// rouse wakes an idle connection's goroutine.
func (s *Set[T]) rouse(p *pinned[T]) {
	i := slices.Index(s.idle, p)
	s.idle = slices.Delete(s.idle, i, i+1)
	p.wake <- struct{}{}
}

// warm dials before p takes ops, if others may take them meanwhile: the application may have all
// connections of the pool, and what waited for the dial would wait for the application.
func (s *Set[T]) warm(p *pinned[T]) {
	if s.counts.open.Load() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, s.cfg.Timeout)
	defer cancel()
	_ = p.open(ctx) // what p takes next dials again, and has the error
}

// prove drops a session whose server does not answer: a network may have cut it in silence while
// nothing ran. Without it a grant that is sent there would have an unknown outcome.
func (p *pinned[T]) prove(ctx context.Context, end time.Time) {
	s := p.session
	if soon := time.Now().Add(proof); soon.Before(end) {
		end = soon
	}
	err := s.conn.PingContext(s.Bind(ctx, end))
	s.Unbind()
	if err != nil {
		p.drop()
	}
}
