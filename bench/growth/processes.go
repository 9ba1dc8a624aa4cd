package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Processes are crowds of different sizes in one database.
type Processes struct {
	Rounds int
	Turn   string
	Crowds []*Crowd
}

// Crowd is so many processes, each with one caller.
type Crowd struct {
	Processes   int
	Own, Shared Load // each with keys of its own; all want the same two

	team crew.Team
}

// Load is what a crowd reached and what the server had to do for it, by round.
type Load struct {
	Pairs, Statements []float64 // a second
	Connections       []float64
	Memory            []float64 // bytes of the server; none if they are not known
}

// shared is how many keys all want.
const shared = 2

// processes has all crowds contend, by turns.
func (s settings) processes(ctx context.Context, d *rig.Database, p *rig.Progress) (r *Processes, err error) {
	r = &Processes{Rounds: s.rounds, Turn: s.contest.String()}
	defer func() {
		for _, c := range r.Crowds {
			err = errors.Join(err, c.team.End())
		}
	}()
	for _, n := range s.crews {
		c := &Crowd{Processes: n}
		r.Crowds = append(r.Crowds, c)
		p.Say(d.Name, fmt.Sprintf("starting %d processes", n))
		if c.team, err = crew.Start(ctx, n, crew.JobOf(d)); err != nil {
			return nil, err
		}
	}
	m, err := newWatch(ctx, d)
	defer func() { err = errors.Join(err, m.close()) }()
	if err != nil {
		return nil, err
	}
	for round := range s.rounds {
		for i := range r.Crowds {
			c := r.Crowds[(i+round)%len(r.Crowds)]
			p.Say(d.Name, fmt.Sprintf("%d processes", c.Processes))
			if err := s.crowd(ctx, c, m); err != nil {
				return nil, fmt.Errorf("%d processes: %w", c.Processes, err)
			}
			p.Step()
		}
	}
	return r, nil
}

// crowd is the turns of a crowd in a round.
func (s settings) crowd(ctx context.Context, c *Crowd, m *watch) error {
	way := crew.Way{Name: "rowlock", Kind: crew.Rowlock, Series: 'p'}
	own := crew.Task{Way: way, Goroutines: 1, Own: true, Warm: s.contest / 2, For: s.contest}
	same := crew.Task{Way: way, Goroutines: 1, Shared: shared, Warm: max(s.contest/2, s.meeting), For: s.contest}
	if err := c.turn(ctx, own, m, &c.Own); err != nil {
		return err
	}
	return c.turn(ctx, same, m, &c.Shared)
}

// turn counts pairs of the turn, and statements of the turn and of the time before it, in which
// processes do the same.
func (c *Crowd) turn(ctx context.Context, what crew.Task, m *watch, into *Load) error {
	all, err := c.team.Turn(what, func() (func() error, error) { return m.begin(ctx, into) })
	if err != nil {
		return err
	}
	pairs := 0
	for _, a := range all {
		pairs += a.Pairs
	}
	into.Pairs = append(into.Pairs, float64(pairs)/what.For.Seconds())
	return nil
}
