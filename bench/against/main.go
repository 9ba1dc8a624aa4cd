// Command against compares rowlock with the other ways to lock: with the two statements that no lease
// lock can do without, sent by hand; with the row that is inserted and deleted; with the databases'
// own locks; with Redis (redislock, redsync, rueidis) and with etcd. It does so on each database it
// finds: SQLite always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES, _MARIADB
// and _MYSQL; Redis if there are ROWLOCK_TEST_REDIS and _REDIS_DEFAULT. An etcd of its own it starts as
// a child.
//
// Contenders take turns in short rounds, and a ratio draws on the same rounds of both: what else the
// machine does then slows both. A workload that fails takes no other's results away; the results are
// written, and the program then exits with 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == memberCommand {
		rig.Main("against "+memberCommand, member)
		return
	}
	rig.MainWithWorkers("against", contest, crew.Work)
}

func contest(ctx context.Context, args []string) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	written := false
	defer func() {
		if s.made && (s.short || !written) {
			err = errors.Join(err, os.RemoveAll(s.out))
		}
	}()
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	others, err := openOthers(ctx, s)
	defer func() { err = errors.Join(err, others.close()) }()
	if err != nil {
		return err
	}
	measure := func(ctx context.Context, d *rig.Database, p *rig.Progress) (*result, error) {
		return s.measure(ctx, d, others, p)
	}
	all, stopped := rig.Measure(ctx, s.kinds, s.steps(), measure)
	if len(all) == 0 {
		return stopped
	}
	v := judge(s, all)
	if err := write(s, others, all, v); err != nil {
		return errors.Join(stopped, err)
	}
	written = true
	sayTimes(os.Stderr, all)
	return errors.Join(stopped, s.conclude(all, v))
}

// conclude says what was found, and returns what is an error of the run.
func (s settings) conclude(all []*result, v *verdicts) error {
	if s.short {
		fmt.Println("all workloads ran; speeds mean nothing")
		return errors.Join(failures(all), exceeded(s, all))
	}
	fmt.Fprintf(os.Stderr, "the results are in %s\n", s.out)
	v.print(os.Stdout)
	if err := failures(all); err != nil || !s.strict {
		return err
	}
	return v.Err()
}

// sayTimes says how long each workload took, for those who make one longer.
func sayTimes(w io.Writer, all []*result) {
	for _, r := range all {
		fmt.Fprintf(w, "%s:", r.kind.Name)
		for _, t := range r.took {
			fmt.Fprintf(w, " %s %.1f s", t.part, t.time.Seconds())
		}
		fmt.Fprintln(w)
	}
}
