package paper

import (
	"math"
	"strconv"
	"strings"
)

// Number writes three digits that count, or all before the point, in groups.
func Number(f float64) string {
	switch a := math.Abs(f); {
	case a >= 100 || f == math.Trunc(f):
		return Grouped(int64(math.Round(f)))
	case a >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	default:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
}

// Grouped writes a number with a comma before each three digits.
func Grouped(n int64) string {
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
