package once

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
)

// lines has, for each key, the call of this process that is working on it. Later calls wait here,
// which costs no connection, and get its result.
type lines struct {
	mu sync.Mutex
	at map[place]*turn
}

// turn is one call's time at the head of its key's queue.
type turn struct {
	fingerprint []byte
	ended       chan struct{}
	waiters     int // that found this turn, under the lines' mutex
	// The outcome, not to be read before ended is closed.
	value []byte
	done  bool
}

// enter makes the caller the head of the queue, or returns the present head.
func (l *lines) enter(r Request) (mine, other *turn) {
	p := r.place()
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.at[p]; other != nil {
		other.waiters++
		return nil, other
	}
	t := &turn{fingerprint: bytes.Clone(r.Fingerprint), ended: make(chan struct{})}
	l.at[p] = t
	return t, nil
}

// leave ends the turn. If it has no result, one of the waiters is next. They get a copy: the caller
// of this turn has the result already, and may write to it.
func (l *lines) leave(r Request, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, r.place())
	if t.waiters > 0 {
		t.value = bytes.Clone(t.value)
	}
	close(t.ended)
}

// wait returns the result of the head of the queue, or the caller's own turn.
func (o *Once) wait(ctx context.Context, r Request, until time.Time) (*turn, Result, error) {
	for {
		mine, other := o.lines.enter(r)
		switch {
		case mine != nil:
			return mine, Result{}, nil
		case !bytes.Equal(other.fingerprint, r.Fingerprint):
			return nil, Result{}, mismatch(r.Key)
		case o.cfg.NoWait:
			return nil, Result{}, inFlight(r.Key)
		}
		if err := await(ctx, other, r.Key, until); err != nil {
			return nil, Result{}, err
		}
		if other.done {
			return nil, Result{Value: bytes.Clone(other.value), Replayed: true}, nil
		}
	}
}

func await(ctx context.Context, other *turn, key string, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-other.ended:
		return nil
	case <-timer.C:
		return inFlight(key)
	case <-ctx.Done():
		return oneline.Join(inFlight(key), ctx.Err())
	}
}
