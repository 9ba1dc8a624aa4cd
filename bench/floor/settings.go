package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// settings are what the command line says.
type settings struct {
	kinds         []kind
	rates, allocs bool
	held          int // locks held at once; 0: leave that part out
	goroutines    []int
	rounds        int
	turn          time.Duration
	lanes         int
	check         bool
}

func parse(args []string) (s settings, err error) {
	s.goroutines = []int{1, 16}
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	names := flags.String("db", "all", "databases, with commas between: sqlite, postgres, mariadb, mysql; all are those there are")
	only := flags.String("only", "", "parts to run, with commas between: rates, allocs, held; empty means all")
	flags.IntVar(&s.rounds, "rounds", 15, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "for", 280*time.Millisecond, "how long a turn is")
	flags.IntVar(&s.lanes, "lanes", 4, "Config.Lanes, and the floor's connections; SQLite has one")
	flags.IntVar(&s.held, "held", 10_000, "locks to hold at once")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.turn <= 0 || s.lanes < 1 || s.held < 0 || flags.NArg() > 0 {
		return s, fmt.Errorf("there must be at least one round, some time, one lane, and no arguments but flags")
	}
	if err := s.choose(*only); err != nil {
		return s, err
	}
	s.kinds, err = present(*names)
	return s, err
}

// choose leaves out the parts that were not asked for.
func (s *settings) choose(only string) error {
	parts := []string{"rates", "allocs", "held"}
	asked := parts
	if only != "" {
		asked = strings.Split(only, ",")
	}
	for _, part := range asked {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("-only %s: there are %s", part, strings.Join(parts, ", "))
		}
	}
	s.rates, s.allocs = slices.Contains(asked, "rates"), slices.Contains(asked, "allocs")
	if !slices.Contains(asked, "held") {
		s.held = 0
	}
	return nil
}
