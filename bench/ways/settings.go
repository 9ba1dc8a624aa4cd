package main

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	kinds      []rig.Kind
	parts      map[string]bool
	goroutines []int
	rounds     int
	turn       time.Duration
	check      bool
}

func parse(args []string) (s settings, err error) {
	s.goroutines = []int{1, 8}
	var names []string
	for _, w := range ways {
		names = append(names, w.name)
	}
	flags := flag.NewFlagSet("ways", flag.ContinueOnError)
	databases := flags.String("db", "all", rig.Names)
	only := flags.String("only", "", "ways, with commas between: "+strings.Join(names, ", ")+"; empty means all")
	flags.IntVar(&s.rounds, "rounds", 11, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "for", 200*time.Millisecond, "how long a turn is")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.turn <= 0 || flags.NArg() > 0 {
		return s, fmt.Errorf("there must be at least one round, some time, and no arguments but flags")
	}
	if s.parts, err = rig.Choose(*only, names...); err != nil {
		return s, err
	}
	s.kinds, err = rig.Present(*databases)
	return s, err
}

// steps is how many steps the progress has.
func (s settings) steps() (n int) {
	for _, k := range s.kinds {
		for _, w := range ways {
			if s.parts[w.name] && w.has(k) {
				n += len(s.goroutines) * s.rounds * w.contenders
			}
		}
	}
	return n
}
