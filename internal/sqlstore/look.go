package sqlstore

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// Look begins an Apply without a write: what can be answered is, so that a batch of losers locks nothing, and what is lost already need
// not be told from what is lost meanwhile. What is left to try is Possible, with the token that the row has. A release that names its
// token is tried unseen: it is nearly always right, and a look would cost it a fifth of its time.
func Look(ctx context.Context, s *Session, d Lists, changes []Change) ([]Applied, error) {
	out := make([]Applied, len(changes))
	at := make([]int, 0, len(changes))
	keys := make([]string, 0, len(changes))
	for i := range changes {
		if c := &changes[i]; c.Releases() && c.From.Token != 0 {
			out[i] = Applied{Outcome: Possible, Token: c.From.Token}
			continue
		}
		at, keys = append(at, i), append(keys, changes[i].From.Key)
	}
	if len(at) == 0 {
		return out, nil
	}
	rows, err := ReadRows(ctx, s, d, keys)
	for n, i := range at {
		if c := &changes[i]; c.Acquires() {
			out[i] = rows[n].Acquired(c.To)
		} else {
			out[i] = rows[n].left(c)
		}
	}
	return out, err
}

// Keys are those of changes.
func Keys(changes []Change) []string {
	keys := make([]string, len(changes))
	for i := range changes {
		keys[i] = changes[i].From.Key
	}
	return keys
}

// Acquired answers an acquire by its row, without a write. Possible is worth one. Found is no grant: an earlier try made it, perhaps
// without an acknowledged commit, and a read does not prove that it lasts.
func (r *Row) Acquired(to lease.Owner) Applied {
	held := !r.Owner.IsZero() && r.Holder.Remaining > 0
	switch {
	case !r.Exists:
		return Applied{Outcome: Absent}
	case !r.Home:
		return Applied{Outcome: Alone}
	case held && r.Owner == to:
		return Applied{Outcome: Found, Token: r.Token}
	case held:
		return Applied{Outcome: Held, Holder: r.Holder}
	case r.Token >= lease.MaxToken-1:
		return Applied{Outcome: Alone}
	}
	return Applied{Outcome: Possible, Token: r.Token}
}

// left is what a release or a hand-over that finds the row is told without a write.
func (r *Row) left(c *Change) Applied {
	switch {
	case !r.Home || r.Owner != c.From.Owner || c.From.Token != 0 && c.From.Token != r.Token:
		return Applied{Outcome: Gone}
	case !c.Releases() && r.Token >= lease.MaxToken-1:
		return Applied{Outcome: Alone}
	}
	return Applied{Outcome: Possible, Token: r.Token}
}

// Hopeless reports whether what Look has found rules out that every change is made now. What is done already is of an earlier try: the
// rest of that was lost since, and to make up for it would grant two parts that were never held together.
func Hopeless(found []Applied) bool {
	return slices.ContainsFunc(found, func(a Applied) bool { return a.Outcome != Possible })
}
