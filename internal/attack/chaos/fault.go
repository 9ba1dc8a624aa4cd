//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

// fault is something that goes wrong.
type fault struct {
	name, what string
	on         []string // databases; none is all
	// able says why it cannot be tried here, or "".
	able func() string
	// before is done before the workers start, strike until ctx ends, and heal after it, whatever has
	// happened.
	before, heal func(ctx context.Context, r *round) error
	strike       func(ctx context.Context, r *round, rng *rand.Rand) error
	// clock says that the server's clock is set.
	clock bool
	// alone keeps it out of mixed, and control out of all: rowlock does not promise to survive it.
	alone, control bool
	// repeats says that it strikes as often as settings.times, in further rounds if need be.
	repeats bool
}

// faults are all that there are. Mixed must be the last: it takes its parts from those before it.
func faults() []*fault {
	list := slices.Concat(
		workerFaults, serverFaults, networkFaults, namespaceFaults, replyFaults, adminFaults, pgbouncerFaults,
		clockFaults, failoverFaults, diskFaults, bridgeFaults,
	)
	return append(list, mixed(list))
}

// chosen are those named, or all that rowlock must survive.
func chosen(names string) (list []*fault, err error) {
	known := make(map[string]*fault)
	for _, f := range faults() {
		known[f.name] = f
		if names == "all" && !f.control {
			list = append(list, f)
		}
	}
	if names == "all" {
		return list, nil
	}
	for _, name := range words(names) {
		if known[name] == nil {
			return nil, fmt.Errorf("-faults %q: see -list", name)
		}
		list = append(list, known[name])
	}
	return list, nil
}

func (f *fault) cannot(db string) string {
	switch {
	case len(f.on) > 0 && !slices.Contains(f.on, db):
		return "it is for " + strings.Join(f.on, " and ")
	case f.able != nil:
		return f.able()
	}
	return ""
}

func describe() {
	for _, f := range faults() {
		note := ""
		if f.control {
			note = " (a control: it is expected to be found)"
		}
		fmt.Printf("%-16s %s%s\n", f.name, f.what, note)
	}
}

// blows counts what was done.
type blows struct {
	mu     sync.Mutex
	counts map[string]int
	total  int
}

func (b *blows) note(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = make(map[string]int)
	}
	b.counts[what]++
	b.total++
}

// again calls f after pauses of every on average, until ctx ends.
func again(ctx context.Context, rng *rand.Rand, every time.Duration, f func() error) error {
	for {
		fight.Sleep(ctx, every/2+time.Duration(rng.Int64N(int64(every))))
		if ctx.Err() != nil {
			return nil
		}
		if err := f(); err != nil {
			return err
		}
	}
}

// between is a random time.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)+1))
}

// mixed has two to four faults at once.
func mixed(from []*fault) *fault {
	parts := slices.DeleteFunc(slices.Clone(from), func(f *fault) bool { return f.alone || f.control })
	return &fault{
		name: "mixed", what: "two to four of the faults that need no server of their own, at once",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return r.together(ctx, r.some(parts, rng))
		},
	}
}

// some draws two to four of the faults that the round can have. It shuffles a copy, so that the
// seed alone decides, and not the rounds before.
func (r *round) some(parts []*fault, rng *rand.Rand) (some []*fault) {
	parts = slices.Clone(parts)
	rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, f := range parts {
		if len(some) < 2+rng.IntN(3) && f.cannot(r.server.name) == "" && f.before == nil && f.heal == nil {
			some = append(some, f)
		}
	}
	return some
}

// together has all strike at once, each by a stream of its own.
func (r *round) together(ctx context.Context, list []*fault) error {
	ended := make(chan error)
	for _, f := range list {
		r.blows.note("with " + f.name)
		stream := r.plan.Stream(f.name)
		go func() { ended <- f.strike(ctx, r, stream) }()
	}
	var all []error
	for range list {
		all = append(all, <-ended)
	}
	return errors.Join(all...)
}
