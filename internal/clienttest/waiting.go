package clienttest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
)

// waited is what became of a call that waited.
type Waited struct {
	Lock *rowlock.Lock
	Err  error
}

// wait has another goroutine wait for a key, and returns when it does.
func Wait(t *testing.T, c *rowlock.Client, key string, opts ...rowlock.Option) <-chan Waited {
	t.Helper()
	return WaitIn(t, t.Context(), c, key, opts...)
}

func WaitIn(t *testing.T, ctx context.Context, c *rowlock.Client, key string, opts ...rowlock.Option) <-chan Waited {
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

// waitedAll is how a LockAll ended.
type waitedAll struct {
	Locks *rowlock.Locks
	Err   error
}

// waitForAll starts a LockAll that must wait.
func WaitAll(t *testing.T, ctx context.Context, c *rowlock.Client, keys []string, opts ...rowlock.Option) <-chan waitedAll {
	t.Helper()
	done := make(chan waitedAll, 1)
	go func() {
		l, err := c.LockAll(ctx, keys, opts...)
		done <- waitedAll{l, err}
	}()
	synctest.Wait()
	if len(done) > 0 {
		t.Fatalf("did not wait: %+v", <-done)
	}
	return done
}

// queued has n goroutines wait for key, one after the other, and notes who gets it in which order. Each holds it for so long.
type queued struct {
	mu     sync.Mutex
	Order  []int
	Tokens []int64
	Served sync.WaitGroup
}

func Queue(t *testing.T, c *rowlock.Client, key string, n int, hold time.Duration) *queued {
	t.Helper()
	q := &queued{}
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
		synctest.Wait() // until it stands in the line
	}
	return q
}
