package main

import (
	"flag"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
)

// settings are what the command line says.
type settings struct {
	race.Settings
	goroutines int
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("fenced", flag.ContinueOnError)
	s.Flags(flags, 500*time.Millisecond)
	flags.IntVar(&s.goroutines, "goroutines", 1, "how many goroutines want the key")
	err = s.Parse(flags, args, &s.goroutines)
	return s, err
}
