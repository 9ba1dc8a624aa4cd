package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// settings are what the command line says.
type settings struct {
	kinds     []rig.Kind
	processes []int
	holds     []time.Duration
	pauses    []time.Duration
	rounds    int
	turn      time.Duration
	warm      time.Duration
	check     bool
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("hot", flag.ContinueOnError)
	names := flags.String("db", "all", rig.Names)
	processes := flags.String("processes", "2,8,32", "numbers of processes, with commas between")
	holds := flags.String("holds", "0,1ms,10ms", "how long a lock is held, with commas between")
	pauses := flags.String("pauses", "2ms,5ms,10ms,20ms", "pauses of polling by hand, each half more or less, with commas between")
	flags.IntVar(&s.rounds, "rounds", 5, "how many turns each way to lock gets")
	flags.DurationVar(&s.turn, "for", 2*time.Second, "how long a turn is")
	flags.DurationVar(&s.warm, "warm", time.Second, "how long all contend before a turn is counted")
	flags.BoolVar(&s.check, "check", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.processes, err = list(*processes, strconv.Atoi); err != nil {
		return s, err
	}
	if s.holds, err = list(*holds, time.ParseDuration); err != nil {
		return s, err
	}
	if s.pauses, err = list(*pauses, time.ParseDuration); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.turn <= 0 || s.warm < 0 || flags.NArg() > 0 {
		return s, errors.New("there must be at least one round, some time, and no arguments but flags")
	}
	s.kinds, err = rig.Present(*names)
	return s, err
}

func list[T any](text string, parse func(string) (T, error)) (out []T, err error) {
	for part := range strings.SplitSeq(text, ",") {
		v, err := parse(part)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// ways are the ways to lock, rowlock the first.
func (s settings) ways() []crew.Way {
	ways := []crew.Way{{Name: "rowlock", Kind: crew.Rowlock, Series: 'A'}}
	for i, pause := range s.pauses {
		ways = append(ways, crew.Way{
			Name: fmt.Sprintf("raw, every %s", pause), Kind: crew.Raw, Pause: pause, Series: 'B' + byte(i),
		})
	}
	return ways
}

// keys are one for each way: no way meets rows that another has left.
func (s settings) keys() (keys []string) {
	for _, w := range s.ways() {
		keys = append(keys, w.Key())
	}
	return keys
}

// steps is how many steps the progress has.
func (s settings) steps() int {
	return len(s.kinds) * len(s.processes) * len(s.holds) * s.rounds * len(s.ways())
}
