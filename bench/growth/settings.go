package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/held"
	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The scenes.
const (
	onKeys      = "keys"
	onProcesses = "processes"
	onHeld      = "held"
)

// settings are what the command line says.
type settings struct {
	kinds   []rig.Kind
	parts   map[string]bool
	rows    []int // of each table
	callers []int
	reaped  int           // rows of the largest table that is swept empty
	pause   time.Duration // of a sweep between transactions
	rounds  int
	turn    time.Duration
	crews   []int
	contest time.Duration // how long a turn of processes is
	meeting time.Duration // how long processes that want the same keys contend before that
	held    []int
	ttl     time.Duration
	short   bool
	out     string
	commit  string
	load    string
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("growth", flag.ContinueOnError)
	names := flags.String("db", "all", rig.Names)
	only := flags.String("only", "", "scenes, with commas between: keys, processes, held; empty means all")
	rows := flags.String("rows", "1000,100000,1000000,10000000", "rows of each table, powers of ten")
	crews := flags.String("processes", "1,4,16,64", "how many processes")
	locks := flags.String("held", "1000,10000,100000,1000000", "how many locks one process holds")
	flags.IntVar(&s.rounds, "rounds", 7, "how many turns each size gets")
	flags.DurationVar(&s.turn, "for", 400*time.Millisecond, "how long a turn is")
	flags.BoolVar(&s.short, "short", false, "everything once, with tiny numbers: whether it runs, and no times")
	flags.StringVar(&s.out, "out", "", "folder for growth.md, its pictures and its figures; empty means none")
	page := flags.Bool("page", false, "write the page of the figures that are kept in -out, and measure nothing")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.commit, s.load = paper.Commit(), paper.Load() // before anything is written, and before our own load
	s.callers, s.reaped, s.contest, s.meeting, s.ttl = []int{1, 16}, 100_000, time.Second, time.Second, 30*time.Second
	s.pause = 5 * time.Millisecond
	if s.rows, err = numbers(*rows); err == nil {
		s.crews, err = numbers(*crews)
	}
	if err == nil {
		s.held, err = numbers(*locks)
	}
	if err != nil {
		return s, err
	}
	if s.short {
		s.shorten()
	}
	if s.rounds < 1 || s.turn <= 0 || flags.NArg() > 0 {
		return s, errors.New("there must be at least one round, a turn longer than 0, and no arguments but flags")
	}
	if s.parts, err = rig.Choose(*only, onKeys, onProcesses, onHeld); err != nil {
		return s, err
	}
	if !*page {
		s.kinds, err = rig.Present(*names)
	}
	return s, err
}

func (s *settings) shorten() {
	s.rounds, s.turn, s.callers, s.rows, s.reaped = 1, 5*time.Millisecond, []int{1}, []int{1000, 10_000}, 0
	s.crews, s.contest, s.meeting = []int{1, 2}, 50*time.Millisecond, 50*time.Millisecond
	s.pause = 0
	s.held, s.ttl = []int{50}, 1500*time.Millisecond
}

// steps is how many steps the progress has.
func (s settings) steps() (n int) {
	for _, k := range s.kinds {
		if s.parts[onKeys] {
			n += len(s.rows) + s.rounds*len(s.callers)
		}
		if s.parts[onProcesses] && k.Driver != "sqlite" {
			n += s.rounds * len(s.crews)
		}
		if s.parts[onHeld] {
			n += len(s.held) * held.Steps
		}
	}
	return n
}

// numbers are at least one, each larger than the one before: the first is what others are compared
// with.
func numbers(text string) (all []int, err error) {
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(one)
		if err != nil || n < 1 || len(all) > 0 && n <= all[len(all)-1] {
			return nil, fmt.Errorf("%s: %q is no number that is larger than the one before", text, one)
		}
		all = append(all, n)
	}
	return all, nil
}
