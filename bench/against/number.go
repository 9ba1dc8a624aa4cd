package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// number writes three digits that count, or all before the point, in groups.
func number(f float64) string {
	switch a := math.Abs(f); {
	case a >= 100 || f == math.Trunc(f):
		return grouped(int64(math.Round(f)))
	case a >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	default:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
}

func grouped(n int64) string {
	digits, sign := strconv.FormatInt(n, 10), ""
	if n < 0 {
		digits, sign = digits[1:], "-"
	}
	var groups []string
	for ; len(digits) > 3; digits = digits[:len(digits)-3] {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

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
	return number(f)
}

// spread is the median of values and, if they differ, the least and the most.
func spread(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	s := rig.SpreadOf(values)
	if s.Least == s.Most {
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Least), number(s.Most))
}
