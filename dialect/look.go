package dialect

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// Look begins an Apply without a write: what can be answered is, so that a batch of losers locks nothing. What is left to try is
// Possible, with the token that the row has now, or by the Change should have.
func Look(ctx context.Context, s *Session, d Dialect, changes []Change) ([]Applied, error) {
	out := make([]Applied, len(changes))
	var keys []string
	for i := range changes {
		if c := &changes[i]; c.Acquires() {
			keys = append(keys, c.From.Key)
		} else if c.Releases() || 0 < c.From.Token && c.From.Token < lease.MaxToken {
			out[i] = Applied{Outcome: Possible, Token: c.From.Token}
		}
	}
	if len(keys) == 0 {
		return out, nil
	}
	rows, err := ReadRows(ctx, s, d, keys)
	if err != nil {
		return out, err
	}
	for i := range changes {
		if c := &changes[i]; c.Acquires() {
			out[i] = rows[0].Acquired(c.To)
			rows = rows[1:]
		}
	}
	return out, nil
}

// Hopeless reports whether what Look has found rules out that every change is made.
func Hopeless(found []Applied) bool {
	return slices.ContainsFunc(found, func(a Applied) bool { return a.Outcome != Possible && a.Outcome != Done })
}
