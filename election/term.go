package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/oneline"
)

// term is one leadership of this candidate.
type term struct {
	c      *candidate
	l      *rowlock.Lock
	cancel context.CancelCauseFunc // of lead's ctx

	mu    sync.Mutex
	bound *time.Timer   // runs while the term drains
	over  bool          // lead has returned
	late  chan struct{} // not nil if the bound passed before; closed after the release
}

// serve runs lead, and ends the leadership whatever lead does. cause is what ended lead's ctx, or
// nil if lead returned before.
func (c *candidate) serve(ctx context.Context, l *rowlock.Lock) (cause, err error) {
	within, done := l.Within(l.Context())
	defer done()
	leading, cancel := context.WithCancelCause(within)
	t := &term{c: c, l: l, cancel: cancel}
	unfollow := context.AfterFunc(ctx, func() { t.drain(context.Cause(ctx)) })
	unwatch := c.stepDown(leading, t)
	defer func() { // also after a panic
		cause = context.Cause(leading)
		unfollow()
		cancel(rowlock.ErrUnlocked) // before the next leader begins
		unwatch()
		if cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
			err = nil // lead says why it ended
		}
		err = t.named(oneline.Join(err, t.end(ctx)))
	}()
	return nil, c.lead(leading, l)
}

// drain tells lead to end. It keeps the lease until lead has returned, or the bound has passed.
func (t *term) drain(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.bound != nil {
		return
	}
	t.cancel(cause)
	t.bound = time.AfterFunc(t.c.drain, t.abandon)
}

// abandon releases the leadership although lead still runs.
func (t *term) abandon() {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.late = make(chan struct{})
	t.mu.Unlock()
	defer close(t.late)
	_ = t.l.Unlock(context.Background())
	t.c.failed(t.named(t.overdue()))
}

// named says which term an error is about.
func (t *term) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rowlock: election %q, term %d: %w", t.c.name, t.l.Token(), err)
}

// overdue is the error of a lead that ran without the leadership, unless it was to be so.
func (t *term) overdue() error {
	if t.c.drain == 0 {
		return nil
	}
	return fmt.Errorf("%w: Drain is %s, and the leadership was released", ErrDrain, t.c.drain)
}

// end releases the leadership after lead has returned. Its error says that lead ran without it.
func (t *term) end(ctx context.Context) error {
	t.mu.Lock()
	t.over = true
	bound, late := t.bound, t.late
	t.mu.Unlock()
	if bound != nil {
		bound.Stop()
	}
	var overdue error
	if late != nil {
		<-late
		if ctx.Err() != nil { // otherwise OnError has been told
			overdue = t.overdue()
		}
	}
	err := t.l.Unlock(ctx) // after abandon it tells again how the lock ended
	if oneline.Is(err, rowlock.ErrLost, rowlock.ErrMaxHold, rowlock.ErrIdle) {
		return oneline.Join(overdue, err)
	}
	return overdue // a release that fails at once is tried again by the client
}
