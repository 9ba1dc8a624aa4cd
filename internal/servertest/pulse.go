package servertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock"
)

// Pulse locks and unlocks a key of its own again and again, and knows the longest that this took. A
// bound in seconds is one for a machine that answers: a test adds to it what the machine was late.
type Pulse struct {
	longest atomic.Int64
	began   atomic.Int64 // of the pair under way, or 0
}

var pulses atomic.Int64

// Pulse begins to measure, until the test ends.
func (s *Scene) Pulse() *Pulse {
	s.Helper()
	p, c := &Pulse{}, s.Client()
	key := fmt.Sprintf("pulse %d", pulses.Add(1))
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	beating.Go(func() {
		for ctx.Err() == nil {
			p.beat(c, key)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	s.Cleanup(func() {
		cancel()
		beating.Wait()
	})
	return p
}

func (p *Pulse) beat(c *rowlock.Client, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	p.began.Store(time.Now().UnixNano())
	if l, err := c.TryLock(ctx, key); err == nil {
		_ = l.Unlock(ctx)
	}
	p.longest.Store(int64(p.Longest()))
	p.began.Store(0)
}

// Longest is the longest that a pair took so far, the one under way included.
func (p *Pulse) Longest() time.Duration {
	longest := time.Duration(p.longest.Load())
	if began := p.began.Load(); began != 0 {
		longest = max(longest, time.Duration(time.Now().UnixNano()-began))
	}
	return longest
}

// Allow is a bound for several requests, one after the other, on a machine as late as this one.
func (p *Pulse) Allow(bound time.Duration) time.Duration { return bound + 5*p.Longest() }
