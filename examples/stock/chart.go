package main

import (
	"fmt"
	"io"
	"strings"
)

const width = 35 // of the longest bar, so that all of it fits into 80

// chart draws orders a second, a bar for each way. A way that sold more than there was has none:
// its speed is worth nothing.
func chart(out io.Writer, all []result) {
	most := 0.0
	for _, r := range all {
		if !r.unsafe {
			most = max(most, r.orders)
		}
	}
	fmt.Fprintf(out, "%-19s %6s %6s %9s\n", "", "sold", "left", "orders/s")
	for _, r := range all {
		fmt.Fprintf(out, "%-19s %6d %6d %9.0f  %s\n", r.name, r.sold, r.left, r.orders, drawn(r, most))
	}
}

func drawn(r result, most float64) string {
	if !r.unsafe {
		return strings.Repeat("█", max(1, int(width*r.orders/most+0.5))) // what sells at all is seen
	}
	if gone := int64(r.items) - r.left; int64(r.sold) > gone {
		return fmt.Sprintf("✗ oversold: %d sales, %d gone", r.sold, gone)
	}
	return "✗ nothing keeps two from one item"
}
