package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const width = 40 // of the longest bar

// chart draws orders a second, a bar for each way. A way that sold more than there was has none: its speed is worth nothing.
func chart(out io.Writer, all []result) {
	most := 0.0
	for _, r := range all {
		if !r.unsafe {
			most = max(most, r.orders)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tsold\tleft\torders/s\t")
	for _, r := range all {
		drawn := strings.Repeat("█", int(width*r.orders/most+0.5))
		if r.unsafe {
			drawn = "✗ nothing keeps two from buying the same item"
			if over := int64(r.sold) + r.left - int64(r.items); over > 0 {
				drawn = fmt.Sprintf("✗ oversold: %d items were sold %d times", r.items-int(r.left), r.sold)
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%s\n", r.name, r.sold, r.left, r.orders, drawn)
	}
	_ = w.Flush()
}
