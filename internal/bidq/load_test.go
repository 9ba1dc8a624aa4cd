package bidq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
)

// load is what several goroutines of each process do with one key for a while.
type load struct {
	processes, goroutines int
	hold                  func() time.Duration
	keep                  time.Duration // MinHold
}

// outcome is how long they waited, and how often each process was granted the key.
type outcome struct {
	mu     sync.Mutex
	waits  []time.Duration
	grants []int
}

// measure runs a load for 3 s, and notes what happens in the 10 s after.
func (l load) measure(t *testing.T, turns bool) *outcome {
	t.Helper()
	o := &outcome{grants: make([]int, l.processes)}
	scene(t, func(t *testing.T, s *server) {
		if !turns {
			s.refuses = lease.ErrUnsupported
		}
		var clients []*rowlock.Client
		for range l.processes {
			clients = append(clients, s.client(t))
		}
		o.measure(t, clients, l)
	})
	return o
}

func (o *outcome) measure(t *testing.T, clients []*rowlock.Client, l load) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i, c := range clients {
		for range l.goroutines {
			running.Go(func() { o.use(ctx, t, i, c, l) })
		}
	}
	time.Sleep(3 * time.Second)
	o.mu.Lock()
	clear(o.grants)
	o.waits = nil
	o.mu.Unlock()
	time.Sleep(10 * time.Second)
	cancel()
	running.Wait()
	slices.Sort(o.waits)
}

func (o *outcome) use(
	ctx context.Context, t *testing.T, process int, c *rowlock.Client, load load,
) {
	var opts []rowlock.Option
	if load.keep > 0 {
		opts = append(opts, rowlock.MinHold(load.keep))
	}
	for ctx.Err() == nil {
		began := time.Now()
		l, err := c.Lock(ctx, "key", opts...)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		o.mu.Lock()
		o.grants[process]++
		o.waits = append(o.waits, time.Since(began))
		o.mu.Unlock()
		time.Sleep(load.hold())
		if err := l.Unlock(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}
}

func (o *outcome) worst() time.Duration { return o.waits[len(o.waits)-1] }

// shares are the fewest and the most grants of a process, as parts of an equal share.
func (o *outcome) shares() (least, most float64) {
	equal := float64(len(o.waits)) / float64(len(o.grants))
	return float64(slices.Min(o.grants)) / equal, float64(slices.Max(o.grants)) / equal
}

func fixed(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// seldom is as long as most for one hold in ten.
func seldom(least, most time.Duration) func() time.Duration {
	return func() time.Duration {
		if rand.N(10) > 0 {
			return least
		}
		return most
	}
}

func TestProcessesOfSeveralGoroutinesWaitNoLongerThanWithoutTurns(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		processes, goroutines []int
		holds                 string
		hold                  func() time.Duration
		random                bool // how long a wait is and who gets how much is by chance
	}{
		{[]int{2, 8, 32}, []int{2, 3, 8}, "none", fixed(0), false},
		{[]int{2, 8, 32}, []int{2, 3, 8}, "5 ms", fixed(5 * ms), false},
		// The key is only just busy, and one process may find so for seconds before another does. With
		// 32 of them, rounds are too long for turns.
		{[]int{2, 8, 32}, []int{2, 3}, "15 ms", fixed(15 * ms), true},
		{[]int{8}, []int{3}, "40 ms", fixed(40 * ms), true}, // not busy: there are no turns
		{[]int{8, 32}, []int{2, 3}, "now and then 30 ms", seldom(0, 30*ms), true},
		{[]int{8, 32}, []int{2, 3}, "now and then 100 ms", seldom(ms, 100*ms), true},
	} {
		for _, n := range c.processes {
			for _, g := range c.goroutines {
				t.Run(fmt.Sprintf("%d processes of %d, holds %s", n, g, c.holds), func(t *testing.T) {
					if race.Enabled && (n != 8 || g != 3) {
						t.Skip("the race detector watches 8 processes of 3")
					}
					l := load{n, g, c.hold, 0}
					with, without := l.measure(t, true), l.measure(t, false)
					limit := without.worst() + 5*ms
					if c.random {
						limit *= 2
					}
					least, most := with.shares()
					t.Logf("%d grants, waits of at most %s, shares of %.2f to %.2f; without turns %d, %s",
						len(with.waits), with.worst(), least, most, len(without.waits), without.worst())
					if with.worst() > limit {
						t.Errorf("a wait of %s, and of %s without turns", with.worst(), without.worst())
					}
					if !c.random && (least < 0.5 || most > 1.5) {
						t.Errorf("grants: %v", with.grants)
					}
				})
			}
		}
	}
}

// older is a process of a version without turns, or with too small a pool.
type older struct{ *process }

func (older) Turns(context.Context, string, func() bool) error { return lease.ErrUnsupported }

func (s *server) older(t *testing.T) *rowlock.Client {
	t.Helper()
	c, err := rowlock.New(older{&process{Store: s.rows, s: s}},
		&rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestClientsWithoutTurnsAreNotStarved(t *testing.T) {
	fleets := []struct{ turns, older int }{{4, 1}, {1, 4}, {1, 1}, {8, 1}, {8, 2}, {6, 4}, {4, 4}}
	for _, c := range fleets[:race.Few(2, len(fleets))] {
		t.Run(fmt.Sprintf("%d with turns and %d without", c.turns, c.older), func(t *testing.T) {
			scene(t, func(t *testing.T, s *server) {
				var clients []*rowlock.Client
				for range c.turns {
					clients = append(clients, s.client(t))
				}
				for range c.older {
					clients = append(clients, s.older(t))
				}
				o := &outcome{grants: make([]int, len(clients))}
				o.measure(t, clients, load{len(clients), 1, fixed(0), 0})
				least, _ := o.shares()
				t.Logf("grants %v, waits of at most %s", o.grants, o.worst())
				if least < 0.25 && o.worst() > time.Second {
					t.Errorf("grants %v, a wait of %s", o.grants, o.worst())
				}
			})
		})
	}
}

func TestCloseHasNothingToWaitForWhereNoTurnWasAskedFor(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		clients, _, end := busy(t, s, 4)
		end()
		time.Sleep(300 * time.Millisecond)
		for _, c := range clients {
			began := time.Now()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("Close took %s", took)
			}
		}
	})
}

// A call does not put off the poll by which an earlier one would have found the key free.
func TestShortWaitsGetAFreeKeyAlthoughTheTurnIsStuck(t *testing.T) {
	for _, limit := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond} {
		scene(t, func(t *testing.T, s *server) {
			clients, _, end := busy(t, s, 4)
			goOn := s.stop(t)
			defer goOn()
			end()
			began := time.Now()
			for {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				l, err := clients[0].Lock(ctx, "key")
				cancel()
				if err == nil {
					_ = l.Unlock(t.Context())
					break
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took > pollMost+limit {
				t.Errorf("with a limit of %s, it got a free key after %s", limit, took)
			}
		})
	}
}

// A lock with MinHold is not released: the key is free when its lease ends.
func TestProcessesThatKeepABusyKeyEachGetItSoon(t *testing.T) {
	o := load{8, 1, fixed(0), 5 * time.Millisecond}.measure(t, true)
	least, most := o.shares()
	t.Logf("%d grants, waits of at most %s, shares of %.2f to %.2f", len(o.waits), o.worst(), least, most)
	if least < 0.5 || o.worst() > 500*time.Millisecond {
		t.Errorf("grants: %v", o.grants)
	}
}

// A process that has had a long turn, and then leaves the key to one without turns, polls now and
// then. Without a pause, virtual time would stand still.
func TestAfterALongTurnAProcessDoesNotPollWithoutAPause(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		var clients []*rowlock.Client
		for range 4 {
			clients = append(clients, s.client(t))
		}
		clients = append(clients, s.older(t))
		o := &outcome{grants: make([]int, len(clients))}
		for range 5 {
			o.measure(t, clients, load{goroutines: 2, hold: func() time.Duration {
				if rand.N(40) > 0 {
					return time.Millisecond
				}
				return 400 * time.Millisecond
			}})
		}
	})
}
