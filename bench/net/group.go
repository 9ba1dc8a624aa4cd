package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The titles of groups.
const (
	onTrip     = "a round trip"
	onPair     = "lock and unlock"
	onSection  = "a section that writes a row"
	onPgx      = "a section, by pgx itself"
	onFive     = "five keys"
	onOnce     = "once"
	onOpen     = "a client"
	onHandOver = "a hand-over between two processes"
)

// The names of ways that pictures have.
const (
	ours     = "rowlock: "
	wayPair  = ours + "Lock, Unlock"
	wayFive  = ours + "LockAll, Unlock"
	wayOnce  = ours + "once.Do"
	wayOwn   = "server's own lock, a transaction"
	wayRedis = "redislock, a transaction"
)

// group is ways to do the same. The first is what the others are compared with.
type group struct {
	title string
	ways  []*way
}

// way is one, and what each round has found: the medians of its times, and its round trips.
type way struct {
	name  string
	do    func(ctx context.Context) (sample, error)
	times []float64 // ms
	trips []float64
}

// sample is what doing it once took.
type sample struct {
	time  time.Duration
	trips int64
}

// ratio is that of the times of two ways, round by round.
func (w *way) ratio(to *way) rig.Spread {
	ratios := make([]float64, len(w.times))
	for round := range ratios {
		ratios[round] = w.times[round] / to.times[round]
	}
	return rig.SpreadOf(ratios)
}

// play gives each way a turn in each round, in an order that turns with the rounds. Before the first
// round each runs in, unless times mean nothing: it makes its connections and prepares its
// statements.
func (s settings) play(ctx context.Context, title string, groups []*group, p *rig.Progress) error {
	for round := s.first(); round < s.rounds; round++ {
		for _, g := range groups {
			p.Say(title, g.title)
			for i := range g.ways {
				w := g.ways[(i+max(0, round))%len(g.ways)]
				if err := w.turn(ctx, s, round >= 0); err != nil {
					return fmt.Errorf("%s, %s: %w", g.title, w.name, err)
				}
			}
			if round >= 0 {
				p.Step()
			}
		}
	}
	return nil
}

// first is the round to begin with.
func (s settings) first() int {
	if s.short {
		return 0
	}
	return -1
}

// turn does it as often as there is time for, and once at least, or twice if it runs in.
func (w *way) turn(ctx context.Context, s settings, counts bool) error {
	var times []float64
	var trips int64
	for began := time.Now(); len(times) == 0 || time.Since(began) < s.turn && counts || len(times) < 2 && !counts; {
		one, err := w.do(ctx)
		if err != nil {
			return err
		}
		times = append(times, one.time.Seconds()*1e3)
		trips += one.trips
	}
	if counts {
		w.times = append(w.times, rig.Median(times))
		w.trips = append(w.trips, float64(trips)/float64(len(times)))
	}
	return nil
}
