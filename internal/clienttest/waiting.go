package clienttest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
)

// Waited is the end of a call that waited.
type Waited struct {
	Lock *rowlock.Lock
	Err  error
}

// Wait has another goroutine wait for a key, and returns when it does.
func Wait(t *testing.T, c *rowlock.Client, key string, opts ...rowlock.Option) <-chan Waited {
	t.Helper()
	return WaitIn(t, t.Context(), c, key, opts...)
}

// WaitIn is Wait with a context of its own.
func WaitIn(t *testing.T, ctx context.Context, c *rowlock.Client, key string,
	opts ...rowlock.Option,
) <-chan Waited {
	t.Helper()
	done := make(chan Waited, 1)
	go func() {
		l, err := c.Lock(ctx, key, opts...)
		done <- Waited{l, err}
	}()
	synctest.Wait()
	if len(done) > 0 {
		t.Fatalf("did not wait: %+v", <-done)
	}
	return done
}

// WaitedAll is the end of a LockAll.
type WaitedAll struct {
	Locks *rowlock.Locks
	Err   error
}

// WaitAll starts a LockAll that must wait.
func WaitAll(t *testing.T, ctx context.Context, c *rowlock.Client, keys []string,
	opts ...rowlock.Option,
) <-chan WaitedAll {
	t.Helper()
	done := make(chan WaitedAll, 1)
	go func() {
		l, err := c.LockAll(ctx, keys, opts...)
		done <- WaitedAll{l, err}
	}()
	synctest.Wait()
	if len(done) > 0 {
		t.Fatalf("did not wait: %+v", <-done)
	}
	return done
}

// Queued are goroutines that wait for one key, in the order in which they get it.
type Queued struct {
	mu     sync.Mutex
	Order  []int
	Tokens []rowlock.Token
	Served sync.WaitGroup
}

// Queue has n goroutines wait for key, one after the other. Each holds it for a while.
func Queue(t *testing.T, c *rowlock.Client, key string, n int, hold time.Duration) *Queued {
	t.Helper()
	q := &Queued{}
	for i := range n {
		q.Served.Go(func() {
			l, err := c.Lock(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			q.mu.Lock()
			q.Order, q.Tokens = append(q.Order, i), append(q.Tokens, l.Token())
			q.mu.Unlock()
			time.Sleep(hold)
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // until it waits
	}
	return q
}
