package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// scene is so many processes.
type scene struct {
	processes, goroutines int
	own                   bool // each goroutine has keys of its own; else all want one key
	runs                  []*run
}

// run is what one way to lock reached in a scene.
type run struct {
	crew.Way
	crew.Tally
	ratio *rig.Interval // of the fastest raw statements' rate
	err   error         // why it has no more turns
}

// The ways that verdicts and charts look for.
const (
	wayRaw = "raw statements" // with pauses
	wayOwn = "pg_advisory_lock"
)

// contested are the ways to lock one key. How long polling by hand is to pause depends on the
// database and on the number of processes, so two pauses take part; make bench-hot tries more.
func contested(d *rig.Database, o *others, host bool) []crew.Way {
	ways := []crew.Way{
		{Name: nameUpdate, Kind: crew.Rowlock, Series: 'A'},
		{Name: wayRaw + ", every 2 ms", Kind: crew.Raw, Pause: 2 * time.Millisecond, Series: 'B'},
		{Name: wayRaw + ", every 10 ms", Kind: crew.Raw, Pause: 10 * time.Millisecond, Series: 'C'},
	}
	if d.Driver == "pgx" {
		ways = append(ways, crew.Way{Name: wayOwn, Kind: crew.OwnLock, Series: 'D'})
	}
	if host && o.redis != "" {
		ways = append(ways, crew.Way{Name: nameRedislock, Kind: crew.Redislock, Series: 'E'})
	}
	if host {
		ways = append(ways, crew.Way{Name: nameEtcd, Kind: crew.Etcd, Series: 'F'})
	}
	return ways
}

// crowdedWays are those of many processes with many goroutines each, on keys of their own, on
// PostgreSQL.
func crowdedWays(o *others) []crew.Way {
	ways := []crew.Way{
		{Name: nameUpdate, Kind: crew.Rowlock, Series: 'G'},
		{Name: wayRaw, Kind: crew.Raw, Pause: 10 * time.Millisecond, Series: 'H'},
		{Name: nameRelaxed, Kind: crew.Rowlock, Relaxed: true, Series: 'I'},
	}
	if o.redis != "" {
		ways = append(ways, crew.Way{Name: nameRedislock, Kind: crew.Redislock, Series: 'J'})
	}
	return ways
}

// scenes are those of a database: two processes, and a crowd of both, only where Redis and etcd
// have turns too.
func (s settings) scenes(d *rig.Database, o *others) (all []*scene) {
	host := d.Name == s.host()
	for _, n := range s.crews {
		if n == s.crews[0] && !host {
			continue
		}
		one := &scene{processes: n, goroutines: 1}
		one.enter(contested(d, o, host))
		all = append(all, one)
	}
	if d.Driver == "pgx" {
		crowd := &scene{processes: s.crowded, goroutines: s.crowded, own: true}
		crowd.enter(crowdedWays(o))
		all = append(all, crowd)
	}
	return all
}

func (one *scene) enter(ways []crew.Way) {
	for _, w := range ways {
		one.runs = append(one.runs, &run{Way: w})
	}
}

// processes has processes contend, by turns as goroutines have them.
func (s settings) processes(ctx context.Context, d *rig.Database, o *others, p *rig.Progress) ([]*scene, error) {
	all := s.scenes(d, o)
	var keys []string // that ways cannot make themselves
	for _, one := range all {
		keys = append(keys, one.keys()...)
	}
	slices.Sort(keys) // scenes of one key have the same
	if err := d.MakeFree(ctx, slices.Compact(keys), 0); err != nil {
		return nil, err
	}
	for _, one := range all {
		if err := s.play(ctx, d, o, one, p); err != nil {
			return all, fmt.Errorf("%d processes: %w", one.processes, err)
		}
	}
	return all, nil
}

// keys are those of raw statements, which update rows and make none.
func (one *scene) keys() (keys []string) {
	for _, r := range one.runs {
		if r.Kind != crew.Raw {
			continue
		}
		if !one.own {
			keys = append(keys, r.Key())
			continue
		}
		for process := range one.processes {
			for n := range one.goroutines * race.Own {
				keys = append(keys, r.Own(process, n/race.Own, n))
			}
		}
	}
	return keys
}

// play gives each way its turns, the order turning with the rounds. A way that has failed has no
// more: its workers may have ended, so the others go on with new ones.
func (s settings) play(ctx context.Context, d *rig.Database, o *others, one *scene, p *rig.Progress) error {
	job := crew.JobOf(d)
	job.Redis, job.Etcd = o.redis, o.etcd
	var team crew.Team
	defer func() { _ = team.End() }() // each turn has said what failed
	for round := range s.rounds {
		for i := range one.runs {
			r := one.runs[(i+round)%len(one.runs)]
			if r.err != nil {
				continue
			}
			p.Say(d.Name, fmt.Sprintf("%s, %d processes", r.Name, one.processes))
			if err := s.ready(ctx, &team, one.processes, job); err != nil {
				return err
			}
			if r.err = s.once(team, one, r); r.err != nil {
				r.err = errors.Join(r.err, team.End())
				team = crew.Team{}
			}
		}
	}
	one.compare()
	return nil
}

// ready starts a team unless there is one.
func (s settings) ready(ctx context.Context, t *crew.Team, processes int, j crew.Job) (err error) {
	if len(t.Team) > 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	*t, err = crew.Start(ctx, processes, j)
	return err
}

func (s settings) once(t crew.Team, one *scene, r *run) error {
	task := crew.Task{Way: r.Way, Goroutines: one.goroutines, Own: one.own, Warm: s.contest / 2, For: s.contest}
	if r.Kind == crew.Rowlock && !one.own { // its processes hear of one another first
		task.Warm = max(task.Warm, s.meeting)
	}
	answers, err := t.Turn(task, nil)
	if err != nil {
		return err
	}
	r.Add(answers, s.contest)
	return nil
}

func (one *scene) compare() {
	floor := one.floor()
	for _, r := range one.runs {
		if r.ran() && floor != nil && rig.Median(floor.Rates) > 0 {
			ratio := rig.RatioOfMedians(r.Rates, floor.Rates)
			r.ratio = &ratio
		}
	}
}

// floor is the fastest of the raw statements.
func (one *scene) floor() (found *run) {
	for _, r := range one.runs {
		if r.Kind == crew.Raw && r.ran() && (found == nil || rig.Median(r.Rates) > rig.Median(found.Rates)) {
			found = r
		}
	}
	return found
}

func (r *run) ran() bool { return r.err == nil && len(r.Rates) > 0 }

// of is the run of a name, or nil.
func (one *scene) of(name string) *run {
	for _, r := range one.runs {
		if r.Name == name {
			return r
		}
	}
	return nil
}
