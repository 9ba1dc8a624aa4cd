package conn

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
)

// bound ends what runs on a connection by the connection's own deadline. Drivers watch a context
// from another goroutine: two changes of goroutines and eleven allocations for each statement, a
// part of a short one's time that grows with the machine's load.
type bound struct {
	cancel  context.CancelFunc // of a session without such a deadline
	ctx     context.Context
	end     time.Time
	stop    func() bool
	expire  func()        // the same for each run, so that it is allocated once
	expired chan struct{} // expire has ended
}

// Bind ends what runs on the connection at end, or when ctx ends, until Unbind. What is run
// meanwhile gets the returned context. If the session has a Limit, that context tells the end and
// never ends. What goes to this machine's disk ends without a bound.
func (s *Session) Bind(ctx context.Context, end time.Time) context.Context {
	switch {
	case s.Local:
		return context.Background()
	case s.Limit == nil:
		ctx, s.bound.cancel = context.WithDeadline(ctx, end)
		return ctx
	}
	s.bound.ctx, s.bound.end = ctx, end
	s.Limit(end)
	told := until{context.Background(), end}
	if ctx.Done() == nil {
		return told
	}
	if s.bound.expired == nil {
		s.bound.expired = make(chan struct{}, 1)
	}
	s.bound.stop = context.AfterFunc(ctx, s.bound.expire)
	return told
}

// until is a context for what divides the time that it has, and that nothing watches.
type until struct {
	context.Context
	end time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.end, true }

// Ended returns err with why it ended, if Bind has ended it: drivers report a watched context's own
// error, and a connection reports none but its deadline.
func (s *Session) Ended(err error) error {
	if err == nil || s.Limit == nil || !s.late(err) {
		return err
	}
	why := s.bound.ctx.Err()
	if why == nil {
		why = context.DeadlineExceeded
	}
	if errors.Is(err, why) {
		return err
	}
	return oneline.Join(why, err)
}

// late reports whether err is that of a deadline that has passed.
func (s *Session) late(err error) bool {
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return true
	}
	over := s.bound.ctx.Err() != nil || !time.Now().Before(s.bound.end)
	return over && s.Severed != nil && s.Severed(err)
}

// Unbind lets what runs next on the connection take any time. An end of the context that came too
// late for what has run is waited for here, because it must not end what runs next.
func (s *Session) Unbind() {
	switch {
	case s.bound.cancel != nil:
		s.bound.cancel()
		s.bound.cancel = nil
		return
	case s.Limit == nil:
		return
	}
	if s.bound.stop != nil && !s.bound.stop() {
		<-s.bound.expired
	}
	s.bound.stop, s.bound.ctx = nil, nil
	s.Limit(time.Time{})
}

func (s *Session) expire() {
	s.Limit(time.Unix(1, 0))
	s.bound.expired <- struct{}{}
}
