// Command wait measures what waiting for a lock costs, and how soon the next one has it: statements that a server sees of a
// thousand waiters, hand-overs within a process, and hand-overs between processes. It does so on each database it finds: SQLite
// always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES, _MARIADB and _MYSQL. Nobody else should use them
// meanwhile: a server counts everybody's statements.
//
// What a time or a rate is compared with is measured beside it, in turns: what else the machine does then slows both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	do := run
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		do = work
	}
	if err := do(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "wait:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	p := rig.NewProgress(s.steps())
	var all []*result
	for _, k := range s.kinds {
		r, err := measure(ctx, k, s, p)
		if err != nil {
			p.Done()
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		all = append(all, r)
	}
	p.Done()
	return report(os.Stdout, s, all)
}

// result is what was found out about one database.
type result struct {
	kind   rig.Kind
	facts  []string
	crowds []crowdResult
	line   *lineResult
	relays []*relay
}

func measure(ctx context.Context, k rig.Kind, s settings, p *rig.Progress) (r *result, err error) {
	d, err := rig.Open(ctx, k)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	r = &result{kind: k}
	if r.facts, err = d.Facts(ctx); err != nil {
		return nil, err
	}
	for _, keys := range s.crowds() {
		c, err := watchCrowd(ctx, d, s, keys, p)
		if err != nil {
			return nil, fmt.Errorf("%d waiters, %d keys: %w", s.waiters, keys, err)
		}
		r.crowds = append(r.crowds, c)
	}
	if s.parts["line"] {
		if r.line, err = runLine(ctx, d, s, p); err != nil {
			return nil, fmt.Errorf("hand-overs in one process: %w", err)
		}
	}
	for _, fair := range s.relays() {
		relay, err := runRelay(ctx, d, s, fair, p)
		if err != nil {
			return nil, fmt.Errorf("hand-overs between processes: %w", err)
		}
		r.relays = append(r.relays, relay)
	}
	return r, nil
}
