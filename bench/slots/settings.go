package main

import (
	"errors"
	"flag"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	kinds             []rig.Kind
	slots, goroutines int
	rounds            int
	turn              time.Duration
	check             bool
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("slots", flag.ContinueOnError)
	databases := flags.String("db", "all", rig.Names)
	flags.IntVar(&s.slots, "slots", 8, "how many slots the semaphore has, and how many keys there are beside it")
	flags.IntVar(&s.goroutines, "goroutines", 64, "how many goroutines want one")
	flags.IntVar(&s.rounds, "rounds", 11, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "for", 500*time.Millisecond, "how long a turn is")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.turn <= 0 || s.slots < 1 || s.goroutines < 1 || flags.NArg() > 0 {
		return s, errors.New("there must be at least one round, some time, one slot, one goroutine, and no arguments but flags")
	}
	s.kinds, err = rig.Present(*databases)
	return s, err
}
