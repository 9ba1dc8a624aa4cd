// Package heat counts events by key in bounded memory and reports the keys with the highest rates.
package heat

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync"
	"time"
)

// halfLife is the time in which a count fades by half.
const halfLife = 2 * time.Second

// Counters has a fixed number of counters. A new key takes over the smallest counter together with
// its count: the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, "Efficient Computation of
// Frequent and Top-k Elements in Data Streams", ICDT 2005). A counter remembers what it took over,
// so that a rate is never above what the key has had itself.
//
// Counts fade by half in each halfLife. No counter is touched for that: a later event has a larger
// weight instead.
type Counters struct {
	mu    sync.Mutex
	size  int
	began time.Time // when an event weighed 1
	keys  map[string]*counter
	least counters
}

type counter struct {
	key          string
	count, taken float64
	place        int
}

// New returns counters for at most size keys.
func New(size int, now time.Time) *Counters {
	return &Counters{size: size, began: now, keys: make(map[string]*counter)}
}

// Note adds n events of a key.
func (h *Counters) Note(now time.Time, key string, n float64) {
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

// weight is the weight of an event now. It scales all counts down before the weight is too large
// for exact sums.
func (h *Counters) weight(now time.Time) float64 {
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

// Rate returns a lower bound of the key's recent events per second.
func (h *Counters) Rate(now time.Time, key string) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.keys[key]; c != nil {
		return h.perSecond(now, c)
	}
	return 0
}

func (h *Counters) perSecond(now time.Time, c *counter) float64 {
	w := h.weight(now) // first, because it may scale the counts
	return (c.count - c.taken) / w * math.Ln2 / halfLife.Seconds()
}

// Key is a key with its rate in events per second.
type Key struct {
	Key  string
	Rate float64
}

// Above returns the keys with at least this rate, the hottest first.
func (h *Counters) Above(now time.Time, rate float64) []Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	var hot []Key
	for _, c := range h.least {
		if r := h.perSecond(now, c); r >= rate {
			hot = append(hot, Key{c.key, r})
		}
	}
	slices.SortFunc(hot, func(a, b Key) int { return cmp.Compare(b.Rate, a.Rate) })
	return hot
}

// counters is a heap with the smallest count first.
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
