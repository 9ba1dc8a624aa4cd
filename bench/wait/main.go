// Command wait measures what waiting for a lock costs, and how soon the next one has it: statements that a server sees of a
// thousand waiters, hand-overs within a process, and hand-overs between processes. It does so on each database it finds: SQLite
// always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES, _MARIADB and _MYSQL. Nobody else should use them
// meanwhile: a server counts everybody's statements.
//
// What a time or a rate is compared with is measured beside it, in turns: what else the machine does then slows both.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.MainWithWorkers("wait", run, work) }

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	all, err := rig.Measure(ctx, s.kinds, s.steps(), s.measure)
	if err != nil {
		return err
	}
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

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *result, err error) {
	r = &result{kind: d.Kind}
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
