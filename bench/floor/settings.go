package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/held"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	kinds         []rig.Kind
	rates, allocs bool
	held          int // locks held at once; 0: leave that part out
	goroutines    []int
	rounds        int
	turn          time.Duration
	connections   int
	check         bool
}

func parse(args []string) (s settings, err error) {
	s.goroutines = []int{1, 16}
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	names := flags.String("db", "all", rig.Names)
	only := flags.String("only", "", "parts to run, with commas between: rates, allocs, held; empty means all")
	flags.IntVar(&s.rounds, "rounds", 15, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "for", 280*time.Millisecond, "how long a turn is")
	flags.IntVar(&s.connections, "connections", 4, "Config.Connections, and the floor's connections; SQLite has one")
	flags.IntVar(&s.held, "held", 10_000, "locks to hold at once")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.turn <= 0 || s.connections < 1 || s.held < 0 || flags.NArg() > 0 {
		return s, fmt.Errorf("there must be at least one round, some time, one pinned connection, and no arguments but flags")
	}
	parts, err := rig.Choose(*only, "rates", "allocs", "held")
	if err != nil {
		return s, err
	}
	s.rates, s.allocs = parts["rates"], parts["allocs"]
	if !parts["held"] {
		s.held = 0
	}
	s.kinds, err = rig.Present(*names)
	return s, err
}

// steps is how many steps the progress has.
func (s settings) steps() (n int) {
	if s.rates {
		n += len(s.goroutines) * s.rounds * 3
	}
	if s.allocs {
		n += 3
	}
	if s.held > 0 {
		n += held.Steps
	}
	return n * len(s.kinds)
}
