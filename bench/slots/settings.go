package main

import (
	"flag"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
)

// settings are what the command line says.
type settings struct {
	race.Settings
	slots, goroutines int
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("slots", flag.ContinueOnError)
	s.Flags(flags, 500*time.Millisecond)
	flags.IntVar(&s.slots, "slots", 8, "how many slots the semaphore has, and how many keys there are beside it")
	flags.IntVar(&s.goroutines, "goroutines", 64, "how many goroutines want one")
	err = s.Parse(flags, args, &s.slots, &s.goroutines)
	return s, err
}
