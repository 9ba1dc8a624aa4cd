package race

import (
	"errors"
	"flag"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Pairs are the headings of a table of Print whose contenders lock and unlock.
const Pairs = "database\tpair\tgoroutines\tpairs/s\tratio (min–max)\ttarget\t"

// Settings are what the command line says to each program that lets contenders race.
type Settings struct {
	Kinds  []rig.Kind
	Rounds int
	Turn   time.Duration
	Check  bool

	databases string
}

// Flags adds the flags of s to those of a program. A turn is so long unless they say otherwise.
func (s *Settings) Flags(flags *flag.FlagSet, turn time.Duration) {
	flags.StringVar(&s.databases, "db", "all", rig.Names)
	flags.IntVar(&s.Rounds, "rounds", 11, "how many turns each contender gets")
	flags.DurationVar(&s.Turn, "for", turn, "how long a turn is")
	flags.BoolVar(&s.Check, "check", false, "exit with 1 if a target is missed")
}

// Parse reads the command line and finds the databases. Each of counts must be at least one.
func (s *Settings) Parse(flags *flag.FlagSet, args []string, counts ...*int) (err error) {
	if err := flags.Parse(args); err != nil {
		return err
	}
	sound := s.Turn > 0 && flags.NArg() == 0
	for _, n := range append(counts, &s.Rounds) {
		sound = sound && *n > 0
	}
	if !sound {
		return errors.New("each number must be at least one, a turn longer than 0, " +
			"and there are no arguments but flags")
	}
	s.Kinds, err = rig.Present(s.databases)
	return err
}

// Course is how long the races are.
func (s *Settings) Course() Course { return Course{Rounds: s.Rounds, Turn: s.Turn} }
