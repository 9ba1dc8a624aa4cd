package main

import (
	"flag"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	race.Settings
	parts      map[string]bool
	goroutines []int
}

func parse(args []string) (s settings, err error) {
	s.goroutines = []int{1, 8}
	var names []string
	for _, w := range ways {
		names = append(names, w.name)
	}
	flags := flag.NewFlagSet("ways", flag.ContinueOnError)
	s.Flags(flags, 200*time.Millisecond)
	only := flags.String("only", "", "ways, with commas between: "+strings.Join(names, ", ")+"; empty means all")
	if err := s.Parse(flags, args); err != nil {
		return s, err
	}
	s.parts, err = rig.Choose(*only, names...)
	return s, err
}

// steps is how many steps the progress has.
func (s settings) steps() (n int) {
	for _, k := range s.Kinds {
		for _, w := range ways {
			if s.parts[w.name] && w.has(k) {
				n += len(s.goroutines) * s.Rounds * w.contenders
			}
		}
	}
	return n
}
