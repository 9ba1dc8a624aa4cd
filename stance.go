package rowlock

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// stance is a call of Lock with a ticket.
type stance struct {
	f     *fair
	t     *ticket
	r     request
	began time.Time
	shown Waiting
}

// stand waits until the ticket has the key. It is a state machine: the key is passed to it within this process, or by another one,
// of which the poller hears, or it is the first and the key is free. An error leaves it to the caller to give the ticket up.
func (s *stance) stand(ctx context.Context) (*Lock, error) {
	for {
		s.show()
		select {
		case g := <-s.t.grant:
			return s.f.c.granted(ctx, g.req, g.answer, s.r, g.sent, s.began)
		case <-s.t.news: // nil, and never, unless somebody looks
		case <-s.t.turn:
			if l, done, err := s.serve(ctx); done {
				return l, err
			}
		case <-ctx.Done():
			return nil, join(s.holder(), ctx.Err())
		case <-s.f.c.closed:
			return nil, fmt.Errorf("%w: lock %q", lease.ErrClosed, s.t.Key)
		}
	}
}

// serve does what the last look said there is to do.
func (s *stance) serve(ctx context.Context) (l *Lock, done bool, err error) {
	s.f.mu.Lock()
	p := s.t.place
	s.f.mu.Unlock()
	switch {
	case p.Err != nil:
		return nil, true, p.Err
	case p.Granted:
		return s.confirm(ctx, p.Token)
	}
	l, err = s.f.c.attemptAs(ctx, s.t.Key, s.t.Owner, s.r, s.began)
	if err == nil || !passing(err) {
		return l, true, err
	}
	if ctx.Err() != nil {
		return nil, true, cutShort(ctx, err)
	}
	s.f.poller.Watch(s.t.id(), sightOf(err))
	return nil, false, nil
}

func (s *stance) holder() error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return &HeldError{Key: s.t.Key, Note: s.t.place.Note, Remaining: max(0, s.t.place.Remaining)}
}

// show tells who looks where it stands, when that has changed.
func (s *stance) show() {
	if s.t.news == nil {
		return
	}
	s.f.mu.Lock()
	p, looked := s.t.place, !s.t.asked.IsZero()
	s.f.mu.Unlock()
	if looked {
		s.shown = s.f.c.show(s.t.Key, s.r, s.shown, Waiting{Ahead: p.Ahead, Holder: p.Note, Remaining: p.Remaining}, s.began)
	}
}
