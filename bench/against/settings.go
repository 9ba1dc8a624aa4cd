package main

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The workloads, as -only names them.
const (
	onFenced    = "fenced"    // sections that write a row, and fence it
	onFree      = "free"      // a few recurring keys for each caller
	onKeys      = "keys"      // keys that recur rarely or never, and a large table
	onHot       = "hot"       // one key that all callers want
	onSkewed    = "skewed"    // many keys, of which most want the same few
	onWaiters   = "waiters"   // a crowd that is served one by one
	onHeld      = "held"      // many locks held at once
	onReaping   = "reaping"   // dead rows removed meanwhile
	onAllocs    = "allocs"    // of one pair
	onProcesses = "processes" // one key that many processes want, and many with keys of their own
)

var workloads = []string{
	onFenced, onAllocs, onFree, onKeys, onHot, onSkewed, onWaiters, onReaping, onProcesses, onHeld,
}

// settings are what the command line says.
type settings struct {
	kinds       []rig.Kind
	parts       map[string]bool
	rounds      int
	turn        time.Duration
	connections int
	out         string
	short       bool
	strict      bool

	made   bool // out, by us
	began  time.Time
	commit string

	scale   int // goroutines are divided by it, where there are more than one
	crews   []int
	crowded int           // processes, each with as many goroutines
	contest time.Duration // how long a turn of processes is
	meeting time.Duration // how long rowlock's contend for a key before that
	rare    int           // keys, of which each recurs when all others were locked
	live    int           // the same, of a large table

	allocated int // pairs whose allocations are counted
	held      int
	heldTTL   time.Duration
	waiters   int
	dead      int
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("against", flag.ContinueOnError)
	names := flags.String("db", "all", rig.Names)
	only := flags.String("only", "", "workloads, with commas between: "+strings.Join(workloads, ", ")+"; empty means all")
	flags.IntVar(&s.rounds, "rounds", 7, "how many turns each contender gets")
	flags.DurationVar(&s.turn, "turn", 250*time.Millisecond, "how long a turn is")
	flags.DurationVar(&s.contest, "contest", 500*time.Millisecond, "how long a turn of many processes is")
	flags.IntVar(&s.connections, "connections", 3, "Config.Connections; SQLite has one")
	flags.IntVar(&s.held, "held", 100_000, "locks to hold at once")
	flags.IntVar(&s.waiters, "waiters", 1000, "goroutines that wait for one key")
	flags.IntVar(&s.dead, "dead", 1_000_000, "dead rows for the reaper to remove")
	flags.StringVar(&s.out, "out", "", "folder for results.md and the charts; empty means a new temporary one, which after -short is removed")
	flags.BoolVar(&s.short, "short", false, "everything once, with tiny numbers: speeds then mean nothing, but a failure, a lost lock, "+
		"or a pair that sends or allocates more than it may exits with 1")
	flags.BoolVar(&s.strict, "strict", false, "exit with 1 if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.began, s.commit = time.Now(), paper.Commit()
	s.scale, s.heldTTL, s.crews, s.crowded = 1, 12*time.Second, []int{2, 8, 32}, 32
	s.rare, s.live, s.allocated, s.meeting = 100_000, 1_000_000, race.ManyPairs, time.Second
	if s.short {
		s.shorten()
	}
	if min(s.rounds, s.connections, s.held, s.waiters, s.dead) < 1 || min(s.turn, s.contest) <= 0 || flags.NArg() > 0 {
		return s, errors.New("there must be at least one round, pinned connection, lock, waiter and dead row, some time, and no arguments but flags")
	}
	if s.parts, err = rig.Choose(*only, workloads...); err != nil {
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
	s.held, s.heldTTL, s.waiters, s.dead = 200, 3*time.Second, 20, 3000
	s.meeting = 50 * time.Millisecond
	s.crews, s.crowded, s.contest, s.rare, s.live, s.allocated = []int{2, 4}, 4, 100*time.Millisecond, 1000, 10_000, 50
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
