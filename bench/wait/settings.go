package main

import (
	"errors"
	"flag"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	kinds     []rig.Kind
	parts     map[string]bool
	waiters   int
	settle    time.Duration
	watch     time.Duration
	rounds    int
	turn      time.Duration
	line      int // goroutines
	processes int
	check     bool
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("wait", flag.ContinueOnError)
	names := flags.String("db", "all", rig.Names)
	only := flags.String("only", "", "parts to run, with commas between: one-key, many-keys, line, processes; empty means all")
	flags.IntVar(&s.waiters, "waiters", 1000, "goroutines that wait for held keys")
	flags.DurationVar(&s.settle, "settle", 3*time.Second, "how long they have waited before their statements are counted")
	flags.DurationVar(&s.watch, "watch", 10*time.Second, "how long their statements are counted")
	flags.IntVar(&s.rounds, "rounds", 10, "how many turns hand-overs, and what they are compared with, get")
	flags.DurationVar(&s.turn, "for", 500*time.Millisecond, "how long a turn is")
	flags.IntVar(&s.line, "goroutines", 16, "goroutines of one process that contend for one key")
	flags.IntVar(&s.processes, "processes", 4, "processes that contend for one key")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if min(s.waiters, s.rounds, s.line) < 1 || min(s.settle, s.watch, s.turn) <= 0 || s.processes < 2 || flags.NArg() > 0 {
		return s, errors.New("there must be at least one waiter, one round, one goroutine, two processes, some time, and no arguments but flags")
	}
	if s.parts, err = rig.Choose(*only, "one-key", "many-keys", "line", "processes"); err != nil {
		return s, err
	}
	s.kinds, err = rig.Present(*names)
	return s, err
}

// crowds are the numbers of keys that a crowd waits for.
func (s settings) crowds() (keys []int) {
	if s.parts["one-key"] {
		keys = append(keys, 1)
	}
	if s.parts["many-keys"] {
		keys = append(keys, s.waiters)
	}
	return keys
}

// relays says for which runs between processes the clients are Fair.
func (s settings) relays() []bool {
	if s.parts["processes"] {
		return []bool{false, true}
	}
	return nil
}

// steps is how many steps the progress has.
func (s settings) steps() int {
	n := len(s.crowds()) + 2*s.rounds*len(s.relays())
	if s.parts["line"] {
		n += 2 * s.rounds
	}
	return n * len(s.kinds)
}
