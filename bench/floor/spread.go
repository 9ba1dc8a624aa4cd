package main

import (
	"fmt"
	"slices"
)

// spread is the middle of some values and how far they lie apart.
type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	middle := len(v) / 2
	s := spread{v[middle], v[0], v[len(v)-1]}
	if len(v)%2 == 0 {
		s.median = (v[middle-1] + v[middle]) / 2
	}
	return s
}

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", s.median, s.least, s.most) }
