package era

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// gates hold back what has not been admitted by each of those that audit: bridges to two clusters
// know each what is in its own.
type gates struct {
	last *atomic.Int64 // that all have admitted

	mu  sync.Mutex
	all []*int64
}

// open is for before the first use.
func (g *gates) open(last *atomic.Int64) {
	g.last = last
	g.last.Store(math.MaxInt64)
}

// hold has all eras after newest wait for admit, until free is called.
func (g *gates) hold(newest int64) (admit func(start int64), free func()) {
	mine := &newest
	g.change(func() { g.all = append(g.all, mine) })
	admit = func(start int64) { g.change(func() { *mine = max(*mine, start) }) }
	free = func() {
		g.change(func() { g.all = slices.DeleteFunc(g.all, func(a *int64) bool { return a == mine }) })
	}
	return admit, free
}

func (g *gates) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	least := int64(math.MaxInt64)
	for _, a := range g.all {
		least = min(least, *a)
	}
	g.last.Store(least)
}
