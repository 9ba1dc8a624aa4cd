package main

import (
	"flag"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	race.Settings
	parts   map[string]bool
	readers int
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("shared", flag.ContinueOnError)
	s.Flags(flags, 280*time.Millisecond)
	only := flags.String("only", "", "parts to run, with commas between: one, many; empty means all")
	flags.IntVar(&s.readers, "readers", 256, "how many goroutines share one key, or take turns at it")
	if err := s.Parse(flags, args, &s.readers); err != nil {
		return s, err
	}
	s.parts, err = rig.Choose(*only, "one", "many")
	return s, err
}

// steps is how many steps the progress has.
func (s settings) steps() (n int) {
	for part, contenders := range map[string]int{"one": 2, "many": 3} {
		if s.parts[part] {
			n += len(s.Kinds) * s.Rounds * contenders
		}
	}
	return n
}
