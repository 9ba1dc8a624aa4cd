package main

import (
	"fmt"
	"math"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// intervalOrNone is a ratio as a cell has it: empty, if there is none.
func intervalOrNone(i *rig.Interval) string {
	if i == nil {
		return ""
	}
	return interval(i)
}

// known is a figure as a cell has it: empty, if it is not known.
func known(f float64) string {
	if math.IsNaN(f) {
		return ""
	}
	return paper.Number(f)
}

// spread is the median of values and, if they differ, the least and the most.
func spread(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	s := rig.SpreadOf(values)
	if s.Least == s.Most {
		return paper.Number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", paper.Number(s.Median), paper.Number(s.Least), paper.Number(s.Most))
}
