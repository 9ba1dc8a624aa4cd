// Command net measures what locks cost where the server is a network away: each call waits for its
// round trips, and little else matters. Connections go through a process that keeps what passes for
// 0.5 ms, and then for 2 ms, each way. Round trips are counted where the client sends, those of
// BEGIN and COMMIT too.
//
// What rowlock does is beside what does the same without it: the server's own locks, SELECT FOR
// UPDATE in the same transaction, and redislock, whose Redis is as far away, with its own
// transaction for the data. All take turns in each round, and a ratio is of one round.
//
// It does so on the servers whose data source names are in ROWLOCK_TEST_POSTGRES, _MARIADB and
// _MYSQL, and with Redis if there is ROWLOCK_TEST_REDIS. SQLite has no network.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/far"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.MainWithWorkers("net", run, work) }

func run(ctx context.Context, args []string) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	places, seen, err := s.places()
	if err != nil {
		return err
	}
	network, err := far.Open(ctx, job{Far: places})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	scenes := seen(network.At)
	var kinds []rig.Kind
	for _, one := range scenes {
		kinds = append(kinds, one.kind)
	}
	measure := func(ctx context.Context, d *rig.Database, p *rig.Progress) (*result, error) {
		return s.measure(ctx, d, scenes.of(d.Source), p)
	}
	all, err := rig.Measure(ctx, kinds, s.steps(kinds), measure)
	if err != nil {
		return err
	}
	report(os.Stdout, s, all)
	if s.short {
		fmt.Println("all ways ran; times mean nothing")
	}
	if s.out != "" {
		return publish(s, all)
	}
	return nil
}

// result is what was found out about one database from so far away.
type result struct {
	kind   rig.Kind
	delay  time.Duration
	facts  []string
	groups []*group
}

func (s settings) measure(ctx context.Context, d *rig.Database, one scene, p *rig.Progress) (r *result, err error) {
	r = &result{kind: d.Kind, delay: one.delay}
	if r.facts, err = d.Facts(ctx); err != nil {
		return nil, err
	}
	f, err := newField(ctx, d, one)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	r.groups = f.groups()
	return r, s.play(ctx, fmt.Sprintf("%s %s", d.Name, one.delay), r.groups, p)
}
