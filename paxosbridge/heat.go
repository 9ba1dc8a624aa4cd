package paxosbridge

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync"
	"time"
)

// halfLife is how fast heat fades.
const halfLife = 2 * time.Second

// heat counts how often keys are asked for, in bounded memory: as many counters as there are allowed, and a new key takes over the
// smallest together with its count (Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams",
// ICDT 2005). What was taken over is remembered: a rate is never more than what a key has had itself.
//
// Counts fade by half in each halfLife. None is touched for that: what is new counts for more and more instead, since some beginning.
type heat struct {
	mu    sync.Mutex
	size  int
	began time.Time
	keys  map[string]*counter
	least counters
}

type counter struct {
	key          string
	count, taken float64
	place        int
}

func newHeat(size int, now time.Time) *heat {
	return &heat{size: size, began: now, keys: make(map[string]*counter)}
}

// note adds n events of a key.
func (h *heat) note(now time.Time, key string, n float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	weight := n * h.weight(now)
	c := h.keys[key]
	switch {
	case c != nil:
		c.count += weight
		heap.Fix(&h.least, c.place)
	case len(h.keys) < h.size:
		c = &counter{key: key, count: weight}
		h.keys[key] = c
		heap.Push(&h.least, c)
	default:
		c = h.least[0]
		delete(h.keys, c.key)
		c.key, c.taken, c.count = key, c.count, c.count+weight
		h.keys[key] = c
		heap.Fix(&h.least, 0)
	}
}

// weight is what an event counts for now. Before it grows too large for exact sums, everything is scaled down.
func (h *heat) weight(now time.Time) float64 {
	w := math.Exp2(now.Sub(h.began).Seconds() / halfLife.Seconds())
	if w < 1<<40 {
		return w
	}
	for _, c := range h.least {
		c.count /= w
		c.taken /= w
	}
	h.began = now
	return 1
}

// rate is at least how many events a second a key has had of late.
func (h *heat) rate(now time.Time, key string) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.keys[key]; c != nil {
		return h.perSecond(now, c)
	}
	return 0
}

func (h *heat) perSecond(now time.Time, c *counter) float64 {
	w := h.weight(now) // first: it may scale the counts
	return (c.count - c.taken) / w * math.Ln2 / halfLife.Seconds()
}

// warmth is a key with its rate.
type warmth struct {
	key  string
	rate float64
}

// above returns the keys with at least this rate, the hottest first.
func (h *heat) above(now time.Time, rate float64) []warmth {
	h.mu.Lock()
	defer h.mu.Unlock()
	var hot []warmth
	for _, c := range h.least {
		if r := h.perSecond(now, c); r >= rate {
			hot = append(hot, warmth{c.key, r})
		}
	}
	slices.SortFunc(hot, func(a, b warmth) int { return cmp.Compare(b.rate, a.rate) })
	return hot
}

// counters is a heap, the smallest first.
type counters []*counter

func (c counters) Len() int           { return len(c) }
func (c counters) Less(i, j int) bool { return c[i].count < c[j].count }
func (c counters) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].place, c[j].place = i, j
}

func (c *counters) Push(x any) {
	one := x.(*counter)
	one.place = len(*c)
	*c = append(*c, one)
}

func (c *counters) Pop() any {
	last := len(*c) - 1
	one := (*c)[last]
	*c = (*c)[:last]
	return one
}
