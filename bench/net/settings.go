package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	kinds  []rig.Kind
	delays []time.Duration
	rounds int
	turn   time.Duration
	short  bool
	out    string
	commit string
	load   string
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("net", flag.ContinueOnError)
	names := flags.String("db", "all", strings.Replace(rig.Names, "sqlite, ", "", 1))
	away := flags.String("away", "500us,2ms", "how far away servers are, each way, with commas between")
	flags.IntVar(&s.rounds, "rounds", 9, "how many turns each way gets")
	flags.DurationVar(&s.turn, "for", 150*time.Millisecond, "how long a turn is")
	flags.BoolVar(&s.short, "short", false, "everything once, from the first distance: times mean nothing")
	flags.StringVar(&s.out, "out", "", "folder for costs.md and its pictures; empty means none")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.delays, err = durations(*away); err != nil {
		return s, err
	}
	s.commit, s.load = paper.Commit(), paper.Load() // before anything is written, and before our own load
	if s.short {
		s.rounds, s.turn, s.delays = 1, time.Millisecond, s.delays[:1]
	}
	if s.rounds < 1 || s.turn <= 0 || flags.NArg() > 0 {
		return s, errors.New("there must be at least one round, a turn longer than 0, and no arguments but flags")
	}
	s.kinds, err = rig.Present(*names)
	s.kinds = slices.DeleteFunc(s.kinds, func(k rig.Kind) bool { return k.Name == "sqlite" })
	if err == nil && len(s.kinds) == 0 {
		err = errors.New("there is no server to be far away from")
	}
	return s, err
}

// steps is how many steps the progress has: the groups of each round.
func (s settings) steps(kinds []rig.Kind) (n int) {
	for _, k := range kinds {
		if n += 6 * s.rounds; k.Driver == "pgx" {
			n += s.rounds
		}
	}
	return n
}

func durations(text string) (all []time.Duration, err error) {
	for one := range strings.SplitSeq(text, ",") {
		d, err := time.ParseDuration(one)
		if err != nil || d < 0 || slices.Contains(all, d) {
			return nil, fmt.Errorf("-away %s: not a time, or not a new one", one)
		}
		all = append(all, d)
	}
	return all, nil
}
