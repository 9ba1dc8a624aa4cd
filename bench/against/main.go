// Command against compares rowlock with the other ways to lock: with the two statements that no lease lock can do without, sent by hand;
// with the row that is inserted and deleted; with the databases' own locks; with Redis (redislock, redsync) and with etcd. It does so on
// each database it finds: SQLite always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES, _MARIADB and _MYSQL; Redis if
// there are ROWLOCK_TEST_REDIS and _REDIS_DEFAULT. An etcd of its own it starts as a child.
//
// Contenders take turns in short rounds, and a ratio is always of the same round: what else the machine does then slows both.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == memberCommand {
		rig.Main("against "+memberCommand, member)
		return
	}
	rig.Main("against", run)
}

func run(ctx context.Context, args []string) (err error) {
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
	all, err := rig.Measure(ctx, s.kinds, s.steps(others), func(ctx context.Context, d *rig.Database, p *rig.Progress) (*result, error) {
		return s.measure(ctx, d, others, p)
	})
	if err != nil {
		return err
	}
	v := judge(s, all)
	if err := write(s, others, all, v); err != nil {
		return err
	}
	written = true
	if s.short {
		fmt.Println("everything ran, unless it says otherwise; the figures mean nothing")
		return failures(all)
	}
	fmt.Fprintf(os.Stderr, "the results are in %s\n", s.out)
	v.print(os.Stdout)
	if s.strict {
		return v.Err()
	}
	return nil
}

// failures are those of contenders, which end no run.
func failures(all []*result) error {
	var errs []error
	for _, r := range all {
		for _, e := range slices.Concat(r.free, r.hot, r.skewed) {
			if e.err != nil {
				errs = append(errs, fmt.Errorf("%s, %s, %d goroutines: %w", r.kind.Name, e.name, e.goroutines, e.err))
			}
		}
		for _, c := range r.crowds {
			if c.err != nil {
				errs = append(errs, fmt.Errorf("%s, %s, %d waiters: %w", r.kind.Name, c.name, c.waiters, c.err))
			}
		}
	}
	return errors.Join(errs...)
}
