package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// contender locks and unlocks a key all the time, from one goroutine.
type contender struct {
	mu     sync.Mutex
	grants int
	worst  time.Duration // of its waits
}

// contend has each client contend for key, and think between two grants. No two hold the key at
// once. end returns when all have ended.
func contend(t *testing.T, key string, think time.Duration, clients ...*rowlock.Client) (
	all []*contender, end func(),
) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var within sync.Mutex
	var running sync.WaitGroup
	for _, c := range clients {
		one := new(contender)
		all = append(all, one)
		running.Go(func() {
			for ctx.Err() == nil {
				if err := one.pair(ctx, c, key, &within); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				time.Sleep(think)
			}
		})
	}
	return all, func() { cancel(); running.Wait() }
}

func (c *contender) pair(
	ctx context.Context, client *rowlock.Client, key string, within *sync.Mutex,
) error {
	began := time.Now()
	l, err := client.Lock(ctx, key)
	if err != nil {
		return err
	}
	if !within.TryLock() {
		return fmt.Errorf("two hold %q", key)
	}
	within.Unlock()
	c.mu.Lock()
	c.grants++
	c.worst = max(c.worst, time.Since(began))
	c.mu.Unlock()
	return l.Unlock(context.WithoutCancel(ctx))
}

// during is how many grants c had in d, and how long it waited for one at most.
func during(d time.Duration, all []*contender) (grants []int, worst time.Duration) {
	grants = make([]int, len(all))
	for i, c := range all {
		c.mu.Lock()
		grants[i], c.worst = -c.grants, 0
		c.mu.Unlock()
	}
	time.Sleep(d)
	for i, c := range all {
		c.mu.Lock()
		grants[i] += c.grants
		worst = max(worst, c.worst)
		c.mu.Unlock()
	}
	return grants, worst
}
