package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	kinds  []rig.Kind
	many   int
	rounds int
	turn   time.Duration
	check  bool
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("trace", flag.ContinueOnError)
	databases := flags.String("db", "all", rig.Names)
	flags.IntVar(&s.many, "goroutines", 64, "how many goroutines lock at a time")
	flags.IntVar(&s.rounds, "rounds", 11, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "for", 1200*time.Millisecond, "how long a turn is: longer than events wait to be written")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.turn <= 0 || s.many < 1 || flags.NArg() > 0 {
		return s, fmt.Errorf("there must be at least one round, some time, one goroutine, and no arguments but flags")
	}
	s.kinds, err = rig.Present(*databases)
	return s, err
}

// steps is how many steps the progress has.
func (s settings) steps() int { return len(s.kinds) * s.rounds * 2 * 3 }
