package clienttest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
)

// asked counts how often a store is asked whether other processes wait, which takes it a while. Its
// releases look for them too, or do not.
type asked struct {
	*Script
	looks      bool
	statements atomic.Int64
}

func (s *asked) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	s.statements.Add(1)
	time.Sleep(time.Millisecond)
	return s.Store.Awaited(ctx, process, keys)
}

func (s *asked) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	out, err := s.Script.Release(ctx, leases)
	for i := range out {
		out[i].Looked = s.looks
	}
	return out, err
}

// keeps has n goroutines lock key for 1 ms each, again and again, until the function that it
// returns is called.
func keeps(t *testing.T, c *rowlock.Client, n int, key string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				l, err := c.Lock(ctx, key)
				if err != nil {
					return
				}
				time.Sleep(time.Millisecond)
				_ = l.Unlock(context.WithoutCancel(ctx))
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// A process that uses keys again and again asks whether others wait for one when its period is
// over, and never if its releases tell.
func TestAKeyThatNoOtherProcessWaitsForIsNotAskedForIfReleasesLook(t *testing.T) {
	const keys, periods, period = 8, 10, 250 * time.Millisecond // PollMax
	for _, looks := range []bool{false, true} {
		t.Run(fmt.Sprintf("a release looks: %t", looks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &asked{Script: NewScript(), looks: looks}
				c := Client(t, s, &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
				for i := range keys {
					defer keeps(t, c, 1, fmt.Sprint("k", i))()
				}
				time.Sleep(periods * period)
				n := s.statements.Load()
				t.Logf("%d statements in %d streaks of each of %d keys", n, periods, keys)
				if looks && n > 0 || !looks && (n == 0 || n > periods*keys) {
					t.Errorf("%d statements", n)
				}
			})
		})
	}
}

// A process that keeps a key busy leaves it to another one within PollMax, and the time in which
// the other polls twice.
func TestAnotherProcessGetsABusyKeyWithinItsBound(t *testing.T) {
	const pollMin, pollMax = 10 * time.Millisecond, 250 * time.Millisecond
	rounds := race.Few(5, 20)
	for _, looks := range []bool{false, true} {
		for _, n := range []int{1, 2, 8} {
			t.Run(fmt.Sprintf("a release looks: %t, %d callers", looks, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &asked{Script: NewScript(), looks: looks}
					cfg := rowlock.Config{Hints: rowlock.HintsOff, Reaper: rowlock.ReaperConfig{Off: true}}
					one, two := cfg, cfg
					a, b := Client(t, s, &one), Client(t, s, &two)
					defer keeps(t, a, n, "k")()
					for round := range rounds {
						// At another time of the period in each round
						time.Sleep(time.Second + time.Duration(round)*pollMax/time.Duration(rounds))
						began := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), 10*pollMax)
						l, err := b.Lock(ctx, "k")
						cancel()
						if err != nil {
							t.Fatal(err)
						}
						if took := time.Since(began); took > pollMax+4*pollMin {
							t.Errorf("round %d: got the key after %s", round, took)
						}
						if err := l.Unlock(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				})
			})
		}
	}
}
