package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
)

// FullError says that too few permits are free. It is a rowlock.ErrHeld.
type FullError struct {
	Name          string
	Wanted, Limit int
	// Waited: others wait before this call, which is InOrder.
	Waited bool

	free int // of the slots, when they were read
}

func (e *FullError) Error() string {
	if e.Waited {
		return fmt.Sprintf("rowlock: semaphore %q: others wait for its %d permits", e.Name, e.Limit)
	}
	return fmt.Sprintf("rowlock: semaphore %q: fewer than %d of its %d permits are free", e.Name, e.Wanted,
		e.Limit)
}

// Unwrap returns rowlock.ErrHeld.
func (e *FullError) Unwrap() error { return rowlock.ErrHeld }

// Acquire waits until it has a permit for n slots, all at once, or ctx ends; then the error is
// ctx.Err() and a [*FullError], or that of rowlock.Client.Lock. n is 1 to the limit. It holds no
// slot while it waits for another.
//
// It takes no part in the search for cycles: a caller that holds a permit and waits for another one
// can wait for itself, until ctx ends. A caller that needs keys too takes its permits first.
//
// ctx bounds the waiting, not the permit: that is held until Release, MaxHold or its loss.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Permit, error) {
	if err := s.checkN(ctx, n); err != nil {
		return nil, err
	}
	switch {
	case s.inOrder:
	case !s.locks.Fair():
		return s.wait(ctx, n)
	default:
		p, err := s.try(ctx, n)
		if err == nil || !passing(err) {
			return p, err
		}
	}
	for {
		p, again, err := s.inTurn(ctx, n)
		if !again {
			return p, err
		}
	}
}

// passing reports whether err is worth waiting for.
func passing(err error) bool {
	waits := errors.Is(err, rowlock.ErrHeld) || errors.Is(err, rowlock.ErrBusy)
	return waits && !errors.Is(err, rowlock.ErrUnknown)
}

// inTurn asks for slots as the one waiter of all processes. again says that it has lost its turn,
// by force, a database that was away, or the end of the client.
func (s *Semaphore) inTurn(ctx context.Context, n int) (_ *Permit, again bool, _ error) {
	if _, err := s.known(ctx); err != nil { // nothing is written for a limit that is refused
		return nil, false, err
	}
	turn, err := s.lockTurn(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = turn.Unlock(ctx) }()
	hints := s.locks.SlotHints(s.of(s.seen()))
	defer hints.Stop()
	for pauses := pauses(); ; {
		hints.Register(ctx)
		p, err := s.try(ctx, n)
		if err == nil || !passing(err) {
			return p, false, err
		}
		if s.pause(ctx, turn.Context().Done(), hints, pauses, &waiter{}) == ended {
			return nil, ctx.Err() == nil, oneline.Join(err, ctx.Err())
		}
	}
}

// lockTurn waits for the turn. A waiter shows no progress, and one that lost its turn by the
// client's MaxIdle or MaxHold would go to the end of the queue.
func (s *Semaphore) lockTurn(ctx context.Context) (*rowlock.Lock, error) {
	const ever = 100 * 365 * 24 * time.Hour
	return s.locks.Lock(cycle.Idle{}.In(ctx), QueueKey(s.name), rowlock.MaxHold(ever), rowlock.MaxIdle(ever))
}

// woken is why a pause has ended.
type woken uint8

const (
	elapsed woken = iota
	freed         // slots of this process may be free, or the turn is half over
	heard         // slots of other processes may be free
	ended         // the turn, ctx, or the wait of w
)

// pause waits until slots may be free, or the turn or ctx has ended.
func (s *Semaphore) pause(
	ctx context.Context, turn <-chan struct{}, hints *rowlock.SlotHints,
	pauses *backoff.ExponentialBackOff, w *waiter,
) woken {
	timer := time.NewTimer(pauses.NextBackOff())
	defer timer.Stop()
	select {
	case <-timer.C:
		return elapsed
	case <-s.freed:
		if s.line.mayBeFree() {
			pauses.Reset()
		}
		return freed
	case <-hints.Freed():
		pauses.Reset()
		return heard
	case w.got = <-w.signal:
	case <-turn:
	case <-ctx.Done():
	}
	return ended
}

func pauses() *backoff.ExponentialBackOff {
	b := retry.Growing(10*time.Millisecond, 250*time.Millisecond, 0.3)
	b.Multiplier = 1.6
	return b
}
