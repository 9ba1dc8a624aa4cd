package election

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/cycle"
)

const forEver = 100 * 365 * 24 * time.Hour

// PreferredKey is the key that a preferred candidate holds while it waits to lead.
func PreferredKey(name string) string { return "election-preferred/" + name }

// claim is get for a preferred candidate. It holds PreferredKey while it waits, so that the others
// stand back. Several of them wait for that key one after the other.
func (c *candidate) claim(ctx context.Context) (*rowlock.Lock, error) {
	l, err := c.locks.TryLock(ctx, Key(c.name), c.locking...)
	if !errors.Is(err, rowlock.ErrHeld) {
		return l, err
	}
	// A candidate that waits makes no progress, however long.
	asks, err := c.locks.Lock(cycle.Idle{Candidate: true}.In(ctx), PreferredKey(c.name),
		rowlock.MaxIdle(forEver), rowlock.MaxHold(forEver))
	if err != nil {
		return nil, err
	}
	defer func() { _ = asks.Unlock(ctx) }()
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(asks.Context(), func() { cancel(context.Cause(asks.Context())) })()
	l, err = c.lock(waiting)
	if lost := context.Cause(asks.Context()); err != nil && lost != nil {
		return nil, lost // and with it the others' reason to stand back: ask again
	}
	return l, err
}

// standBack is get for a candidate that is not preferred. It must look after the grant: a preferred
// candidate that comes later is seen by stepDown.
func (c *candidate) standBack(ctx context.Context) (*rowlock.Lock, error) {
	for {
		l, err := c.lock(ctx)
		if err != nil {
			return nil, err
		}
		waits, err := look(ctx, c.locks, PreferredKey(c.name))
		if err != nil || waits.IsVacant() { // stepDown looks again
			return l, nil
		}
		_ = l.UnlockNow(ctx)
		for waits, err := range follow(ctx, c.locks, PreferredKey(c.name)) {
			if err == nil && waits.IsVacant() || errors.Is(err, rowlock.ErrClosed) {
				break
			}
		}
	}
}

// stepDown drains the term of a candidate that is not preferred when a preferred one waits. The
// function that it returns ends the watch, after leading has ended.
func (c *candidate) stepDown(leading context.Context, t *term) (unwatch func()) {
	if !c.ranked || c.preferred {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for waits, err := range follow(leading, c.locks, PreferredKey(c.name)) {
			if err == nil && !waits.IsVacant() {
				t.drain(ErrPreferred)
				return
			}
		}
	}()
	return func() { <-done }
}
