package race

import (
	"context"
	"runtime"
)

// Allocation is what one pair allocates, in the whole process.
type Allocation struct{ Objects, Bytes float64 }

// Minus is what a allocates beyond b.
func (a Allocation) Minus(b Allocation) Allocation {
	return Allocation{a.Objects - b.Objects, a.Bytes - b.Bytes}
}

// ManyPairs are enough for figures that are published.
const ManyPairs = 300

// Allocated runs so many pairs of a contender with one goroutine. It must have warmed up.
func Allocated(ctx context.Context, c Contender, k *Keys, pairs int) (Allocation, error) {
	made := make([]string, pairs) // beforehand: a key is the caller's to make
	for n := range made {
		made[n] = k.Next(c, 0, n)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, key := range made {
		if err := c.Pair(ctx, key); err != nil {
			return Allocation{}, err
		}
	}
	runtime.ReadMemStats(&after)
	return Allocation{
		float64(after.Mallocs-before.Mallocs) / float64(pairs), float64(after.TotalAlloc-before.TotalAlloc) / float64(pairs),
	}, nil
}
