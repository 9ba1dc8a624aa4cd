package rig

import (
	"fmt"
	"slices"
)

// Spread is the middle of some values and how far they lie apart.
type Spread struct{ Median, Least, Most float64 }

// SpreadOf sorts values, of which there must be one.
func SpreadOf(values []float64) Spread {
	v := slices.Sorted(slices.Values(values))
	middle := len(v) / 2
	s := Spread{v[middle], v[0], v[len(v)-1]}
	if len(v)%2 == 0 {
		s.Median = (v[middle-1] + v[middle]) / 2
	}
	return s
}

func (s Spread) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Least, s.Most) }
