package rig

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Interval is a figure and the interval that holds it with 95 %.
type Interval struct{ Value, Low, High float64 }

func (i Interval) String() string { return fmt.Sprintf("%.2f [%.2f, %.2f]", i.Value, i.Low, i.High) }

// resamples is how many runs are drawn. More would change the third digit of an interval.
const resamples = 4000

// RatioOfMedians is the median of a divided by that of b, with a bootstrap interval. a and b are
// of the same rounds, and so each drawn run has the rounds of both: what else the machine did in a
// round slowed both. There must be a round. The seed is fixed, so that one run has one answer.
func RatioOfMedians(a, b []float64) Interval {
	n := min(len(a), len(b))
	random := rand.New(rand.NewPCG(1, uint64(n)))
	of, to, ratios := make([]float64, n), make([]float64, n), make([]float64, resamples)
	for i := range ratios {
		for round := range n {
			drawn := random.IntN(n)
			of[round], to[round] = a[drawn], b[drawn]
		}
		ratios[i] = Median(of) / Median(to)
	}
	slices.Sort(ratios)
	return Interval{
		Median(a[:n]) / Median(b[:n]),
		stat.Quantile(0.025, stat.Empirical, ratios, nil), stat.Quantile(0.975, stat.Empirical, ratios, nil),
	}
}

// MedianOf is the median of values with a bootstrap interval. There must be one.
func MedianOf(values []float64) Interval {
	return RatioOfMedians(values, slices.Repeat([]float64{1}, len(values)))
}

// Median is the middle of values, which it leaves as they are.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	middle := len(v) / 2
	if len(v)%2 == 0 {
		return (v[middle-1] + v[middle]) / 2
	}
	return v[middle]
}
