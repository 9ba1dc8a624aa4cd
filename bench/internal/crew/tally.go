package crew

import (
	"math"
	"slices"
	"time"
)

// Tally is what one way reached in the turns of one number of processes.
type Tally struct {
	Rates []float64 // pairs per second, by round
	Waits []int64   // µs, of all rounds
	Pairs []int     // by process, of all rounds
}

// Add counts a turn of so long.
func (t *Tally) Add(all []Answer, turn time.Duration) (pairs int) {
	if t.Pairs == nil {
		t.Pairs = make([]int, len(all))
	}
	for i, a := range all {
		pairs += a.Pairs
		t.Pairs[i] += a.Pairs
		t.Waits = append(t.Waits, a.Waits...)
	}
	t.Rates = append(t.Rates, float64(pairs)/turn.Seconds())
	return pairs
}

// Wait is the quantile of the waiting times.
func (t *Tally) Wait(q float64) time.Duration {
	if len(t.Waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t.Waits))
	return time.Duration(sorted[int(q*float64(len(sorted)-1))]) * time.Microsecond
}

// Shares are what the processes had that had least and most, of an equal share.
func (t *Tally) Shares() (least, most float64) {
	sum := 0
	for _, n := range t.Pairs {
		sum += n
	}
	equal := math.Max(1, float64(sum)) / float64(len(t.Pairs))
	return float64(slices.Min(t.Pairs)) / equal, float64(slices.Max(t.Pairs)) / equal
}
