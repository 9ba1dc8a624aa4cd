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
	keys       int
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("fenced", flag.ContinueOnError)
	s.Flags(flags, 500*time.Millisecond)
	flags.IntVar(&s.goroutines, "goroutines", 1, "how many goroutines want the keys")
	flags.IntVar(&s.keys, "keys", 1, "how many keys, each with a row; they are taken in turn")
	err = s.Parse(flags, args, &s.goroutines, &s.keys)
	return s, err
}
