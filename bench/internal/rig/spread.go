package rig

import (
	"fmt"
	"math/big"
	"slices"
)

// Spread is the middle of some values and how far they lie apart.
type Spread struct {
	Median, Least, Most float64
	// Low and High hold the median of all turns that there could have been, with a probability of
	// 95 % at least, however times are distributed. Fewer than 6 values cannot say so much: Low and
	// High are then Least and Most.
	Low, High float64
}

// SpreadOf sorts values, of which there must be one.
func SpreadOf(values []float64) Spread {
	v := slices.Sorted(slices.Values(values))
	middle := len(v) / 2
	out := outside(len(v))
	s := Spread{v[middle], v[0], v[len(v)-1], v[out], v[len(v)-1-out]}
	if len(v)%2 == 0 {
		s.Median = (v[middle-1] + v[middle]) / 2
	}
	return s
}

func (s Spread) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Least, s.Most) }

// Interval is the median with Low and High.
func (s Spread) Interval() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", s.Median, s.Low, s.High) }

// outside is how many of n values may be left out at either end, so that the median lies between
// the others with 95 %. As many values are below it as a coin that is tossed n times shows heads.
func outside(n int) (out int) {
	var heads big.Int
	both := 0.0 // the probability that the median lies outside, at both ends
	for k := 0; k < n/2; k++ {
		ways, _ := heads.Binomial(int64(n), int64(k)).Float64()
		all, _ := new(big.Float).SetMantExp(big.NewFloat(1), n).Float64()
		if both += 2 * ways / all; both > 0.05 {
			break
		}
		out = k
	}
	return out
}
