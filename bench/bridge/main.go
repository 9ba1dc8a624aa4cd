// Command bridge measures what a bridge costs the keys that never move, and what one hot key
// reaches in the table and in each cluster it finds: etcd, whose endpoints are in
// ROWLOCK_TEST_ETCD, and Group Replication, whose members are in ROWLOCK_TEST_GROUP. It does so on
// each database it finds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.Main("bridge", run) }

// settings are what the command line says.
type settings struct {
	kinds  []rig.Kind
	rounds int
	turn   time.Duration
	check  bool
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("bridge", flag.ContinueOnError)
	databases := flags.String("db", "all", rig.Names)
	flags.IntVar(&s.rounds, "rounds", 15, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "for", 300*time.Millisecond, "how long a turn is")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.turn <= 0 || flags.NArg() > 0 {
		return s, errors.New("there must be at least one round, some time, and no arguments but flags")
	}
	s.kinds, err = rig.Present(*databases)
	return s, err
}

// levels are goroutines that lock keys of their own.
var levels = []int{1, 64, 1024}

// result is what was found out about one database.
type result struct {
	kind rig.Kind
	cost []race.Row
	hot  []hotRow
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	all, err := rig.Measure(ctx, s.kinds, len(s.kinds)*len(levels)*2*s.rounds, s.measure)
	if err != nil {
		return err
	}
	return report(os.Stdout, s, all)
}

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *result, err error) {
	r = &result{kind: d.Kind}
	if r.cost, err = s.cost(ctx, d, p); err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	if r.hot, err = s.hot(ctx, d, p); err != nil {
		return nil, fmt.Errorf("hot key: %w", err)
	}
	return r, nil
}

func report(w io.Writer, s settings, all []*result) error {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d, %d rounds of %s\n", runtime.Version(), runtime.GOMAXPROCS(0), s.rounds, s.turn)
	v := &rig.Verdicts{}
	rig.Table(w, "keys that never move\t\tgoroutines\tpairs a second\tratio (min–max)\ttarget\t", all, func(w io.Writer, r *result) {
		race.Print(w, r.kind.Name, r.cost, v)
	})
	rig.Table(w, "one hot key\tin\tprocesses\tpairs a second\tof the table's (min–max)\tp50 ms\tp99 ms\tcalls to the table a second: read\twrite\t", all,
		func(w io.Writer, r *result) {
			for _, row := range r.hot {
				fmt.Fprintf(w, "%s\t%s\t2, 32 goroutines each\t%.0f\t%s\t%.2f\t%.2f\t%.1f\t%.1f\t\n", r.kind.Name, row.home, row.rate.Median, row.ratio,
					row.p50, row.p99, row.reads, row.writes)
			}
		})
	if s.check {
		return v.Err()
	}
	return nil
}
