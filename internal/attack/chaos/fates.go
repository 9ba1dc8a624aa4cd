//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
	"github.com/rowlockdb/rowlock/internal/attack/proxy"
)

// fates choose the statements that are cut. Each kind of statement has each fate in turn, the rare
// ones sooner.
type fates struct {
	round *round

	mu   sync.Mutex
	on   []proxy.Fate // none: all pass
	rng  *rand.Rand
	seen map[string]int
	met  map[string]map[proxy.Fate]int
	last int64
}

func newFates(r *round) *fates {
	return &fates{round: r, rng: r.plan.Stream("fates"), seen: make(map[string]int), met: make(map[string]map[proxy.Fate]int)}
}

func (f *fates) allow(list ...proxy.Fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = append(f.on, list...) // mixed can have reply and late
}

func (f *fates) off() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = nil
}

// betweenCuts is the shortest time between two cuts, in nanoseconds: workers must get something
// done.
const betweenCuts = 15e6

func (f *fates) decide(s proxy.Statement) proxy.Fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.on) == 0 {
		return proxy.Pass
	}
	f.seen[s.Kind]++
	least := f.least(s.Kind)
	odds := 30
	if f.met[s.Kind][least] == 0 {
		odds = 3
	}
	if fight.Now()-f.last < betweenCuts || f.rng.IntN(odds) > 0 {
		return proxy.Pass
	}
	f.last = fight.Now()
	if f.met[s.Kind] == nil {
		f.met[s.Kind] = make(map[proxy.Fate]int)
	}
	f.met[s.Kind][least]++
	f.round.blows.note(fmt.Sprintf("%s: %s", s.Kind, least))
	return least
}

// least is the fate that a kind has met least often.
func (f *fates) least(kind string) proxy.Fate {
	list := slices.Clone(f.on)
	f.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return slices.MinFunc(list, func(a, b proxy.Fate) int { return f.met[kind][a] - f.met[kind][b] })
}
