package main

import (
	"errors"
	"flag"
	"os"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The workloads, as -only names them.
const (
	onFree    = "free"    // keys that nobody else wants, recurring ones and one-shot ones
	onHot     = "hot"     // one key that everybody wants
	onSkewed  = "skewed"  // many keys, of which most want the same few
	onWaiters = "waiters" // a crowd that is served one by one
	onHeld    = "held"    // many locks held at once
	onReaping = "reaping" // dead rows removed meanwhile
	onAllocs  = "allocs"
)

// settings are what the command line says.
type settings struct {
	kinds  []rig.Kind
	parts  map[string]bool
	rounds int
	turn   time.Duration
	lanes  int
	out    string
	short  bool
	strict bool

	made bool // out, by us

	scale   int // goroutines are divided by it, where there are more than one
	held    int
	heldTTL time.Duration
	waiters int
	dead    int
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("against", flag.ContinueOnError)
	names := flags.String("db", "all", rig.Names)
	only := flags.String("only", "", "workloads, with commas between: free, hot, skewed, waiters, held, reaping, allocs; empty means all")
	flags.IntVar(&s.rounds, "rounds", 3, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "turn", 600*time.Millisecond, "how long a turn is")
	flags.IntVar(&s.lanes, "lanes", 3, "Config.Lanes; SQLite has one")
	flags.IntVar(&s.held, "held", 100_000, "locks to hold at once")
	flags.IntVar(&s.waiters, "waiters", 1000, "goroutines that wait for one key")
	flags.IntVar(&s.dead, "dead", 1_000_000, "dead rows for the reaper to remove")
	flags.StringVar(&s.out, "out", "", "folder for results.md and the charts; empty means a new temporary one, which after -short is removed")
	flags.BoolVar(&s.short, "short", false, "everything once, with tiny numbers, to see that it works: the figures mean nothing")
	flags.BoolVar(&s.strict, "strict", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.scale, s.heldTTL = 1, 12*time.Second
	if s.short {
		s.shorten()
	}
	if min(s.rounds, s.lanes, s.held, s.waiters, s.dead) < 1 || s.turn <= 0 || flags.NArg() > 0 {
		return s, errors.New("there must be at least one round, lane, lock, waiter and dead row, some time, and no arguments but flags")
	}
	if s.parts, err = rig.Choose(*only, onFree, onHot, onSkewed, onWaiters, onHeld, onReaping, onAllocs); err != nil {
		return s, err
	}
	if s.kinds, err = rig.Present(*names); err != nil {
		return s, err
	}
	if s.out == "" {
		s.out, err = os.MkdirTemp("", "rowlock-against-")
		s.made = true
	}
	return s, err
}

func (s *settings) shorten() {
	s.rounds, s.turn, s.scale = 1, 20*time.Millisecond, 8
	s.held, s.heldTTL, s.waiters, s.dead = 200, 1500*time.Millisecond, 50, 3000
}

// level is how many goroutines there are for n.
func (s settings) level(n int) int { return max(1, n/s.scale) }

// levelsOf are the numbers of goroutines that a contender runs with.
func (s settings) levelsOf(c *contender) (levels []int) {
	for _, n := range c.levels {
		levels = append(levels, s.level(n))
	}
	return slices.Compact(levels)
}

// host is the database in whose rounds Redis and etcd have their turns: ratios are of neighbours in time.
func (s settings) host() string {
	for _, k := range s.kinds {
		if k.Name == "postgres" {
			return k.Name
		}
	}
	return s.kinds[0].Name
}

// reaps is the database that the reaper is watched on: one is enough, and the last found is a server if there is one.
func (s settings) reaps() string {
	if host := s.host(); host == "postgres" {
		return host
	}
	return s.kinds[len(s.kinds)-1].Name
}
