package rig

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// ErrMissed says that a target was missed.
var ErrMissed = errors.New("a target was missed")

// Verdicts counts missed targets.
type Verdicts struct{ missed int }

// Mark is what a table says of a target.
func (v *Verdicts) Mark(kept bool) string {
	if kept {
		return "MET"
	}
	v.missed++
	return "MISSED"
}

// Err is ErrMissed if a target was.
func (v *Verdicts) Err() error {
	if v.missed == 0 {
		return nil
	}
	return fmt.Errorf("%d times: %w", v.missed, ErrMissed)
}

// Table prints what lines writes for each database: cells, with a tab after each.
func Table[R any](w io.Writer, head string, all []R, lines func(io.Writer, R)) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, head)
	for _, r := range all {
		lines(t, r)
	}
	_ = t.Flush()
}
