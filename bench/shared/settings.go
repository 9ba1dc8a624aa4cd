package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	kinds   []rig.Kind
	parts   map[string]bool
	readers int
	rounds  int
	turn    time.Duration
	check   bool
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("shared", flag.ContinueOnError)
	databases := flags.String("db", "all", rig.Names)
	only := flags.String("only", "", "parts to run, with commas between: one, many; empty means all")
	flags.IntVar(&s.readers, "readers", 256, "how many goroutines share one key, or take turns at it")
	flags.IntVar(&s.rounds, "rounds", 11, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "for", 280*time.Millisecond, "how long a turn is")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.turn <= 0 || s.readers < 1 || flags.NArg() > 0 {
		return s, fmt.Errorf("there must be at least one round, some time, one reader, and no arguments but flags")
	}
	if s.parts, err = rig.Choose(*only, "one", "many"); err != nil {
		return s, err
	}
	s.kinds, err = rig.Present(*databases)
	return s, err
}

// steps is how many steps the progress has.
func (s settings) steps() (n int) {
	for part, contenders := range map[string]int{"one": 2, "many": 3} {
		if s.parts[part] {
			n += len(s.kinds) * s.rounds * contenders
		}
	}
	return n
}
