package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// pair is two processes that hand a key over.
type pair struct {
	team  rig.Team
	redis bool
	next  int // who has the key next
}

// order is what a process is told to do by one of its ways.
type order struct {
	Way  string
	Lock bool // or unlock
}

// done is its answer. Times are of the wall clock: both processes are on one machine.
type done struct {
	Began, Ended time.Time
	Trips        int64
	Failed       string
}

func newPair(ctx context.Context, d *rig.Database, redis string) (*pair, error) {
	p := &pair{redis: redis != ""}
	var err error
	p.team, err = rig.StartTeam(ctx, 2, job{Holder: &holder{d.Name, d.Source, d.Prefix, redis}})
	return p, err
}

func (p *pair) close() error { return p.team.End() }

func (p *pair) group() *group {
	g := &group{title: onHandOver}
	for _, name := range holds {
		if name != holdRedis || p.redis {
			g.ways = append(g.ways, &way{name: name, do: func(context.Context) (sample, error) { return p.handOver(name) }})
		}
	}
	return g
}

// waits is how long one has waited when the other releases the key: it has long asked, and heard
// that it must wait.
const waits = 40 * time.Millisecond

// handOver is the time from before one process releases the key until the other has it, and the
// round trips of the release and of the whole call that waited.
func (p *pair) handOver(name string) (sample, error) {
	p.next++
	from, to := p.team[p.next%2:][:1], p.team[(p.next+1)%2:][:1]
	lock, unlock := order{name, true}, order{name, false}
	if _, err := ask(from, lock); err != nil {
		return sample{}, err
	}
	if err := to.Tell(lock); err != nil {
		return sample{}, err
	}
	time.Sleep(waits)
	released, err := ask(from, unlock)
	if err != nil {
		return sample{}, err
	}
	locked, err := hear(to)
	if err != nil {
		return sample{}, err
	}
	if locked.Ended.Before(released.Began) {
		return sample{}, fmt.Errorf("%s: both had the key", name)
	}
	_, err = ask(to, unlock)
	return sample{locked.Ended.Sub(released.Began), released.Trips + locked.Trips}, err
}

func ask(one rig.Team, what order) (done, error) {
	if err := one.Tell(what); err != nil {
		return done{}, err
	}
	return hear(one)
}

func hear(one rig.Team) (d done, err error) {
	if err = one.Hear(func(int) any { return &d }); err == nil && d.Failed != "" {
		err = errors.New(d.Failed)
	}
	return d, err
}
