package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/semaphore"
)

// Callers that take their permits first and lock keys under them can wait for each other by the
// keys alone: then one of them is told, and the other goes on.
func TestACycleOfKeysUnderPermitsIsFound(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		done := make(chan error, 2)
		for _, keys := range [][2]string{{"a", "b"}, {"b", "a"}} {
			locks := clienttest.Client(t, s, nil)
			sem := of(t, locks, 2)
			go func() { done <- underPermit(t.Context(), locks, sem, keys) }()
		}
		first, second := <-done, <-done
		if errors.Is(first, rowlock.ErrDeadlock) == errors.Is(second, rowlock.ErrDeadlock) ||
			first != nil && second != nil {
			t.Errorf("%v, and %v", first, second)
		}
		take(t, process(t, s, 2), 2)
	})
}

// underPermit locks two keys, the second long after the first.
func underPermit(
	ctx context.Context, locks *rowlock.Client, sem *semaphore.Semaphore, keys [2]string,
) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p, err := sem.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { _ = p.Release(ctx) }()
	first, err := locks.Lock(p.Context(), keys[0])
	if err != nil {
		return err
	}
	defer func() { _ = first.Unlock(ctx) }()
	time.Sleep(time.Second)
	under, stop := context.WithTimeout(first.Context(), 30*time.Second)
	defer stop()
	second, err := locks.Lock(under, keys[1])
	if err != nil {
		return err
	}
	return second.Unlock(ctx)
}
