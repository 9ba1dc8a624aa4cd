package sqlstore

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Look begins an Apply without a write. It answers what it can, so that a batch of losers locks
// nothing. What is lost already then need not be distinguished from what is lost meanwhile. What
// must be tried is Possible, with the token that the row has. What names its token is tried unread,
// because that is nearly always right, and reading would cost it a fifth of its time.
func Look(ctx context.Context, s *conn.Session, d Lists, changes []Change) ([]Applied, error) {
	out := make([]Applied, len(changes))
	at := make([]int, 0, len(changes))
	keys := make([]string, 0, len(changes))
	for i := range changes {
		if token := changes[i].names(); token != 0 {
			out[i] = Applied{Outcome: Possible, Token: token}
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

// names is the token with which the change is tried unread, or 0. What would exhaust the row's
// tokens is read first.
func (c *Change) names() lease.Token {
	token := c.From.Token
	if c.Acquires() {
		token = c.Expects
	}
	if !c.Releases() && token >= lease.MaxToken-1 {
		return 0
	}
	return token
}

// Keys returns the keys of changes.
func Keys(changes []Change) []string {
	keys := make([]string, len(changes))
	for i := range changes {
		keys[i] = changes[i].From.Key
	}
	return keys
}

// Acquired answers an acquire by its row, without a write. Possible is worth one. Found is no
// grant: an earlier try made it, perhaps without an acknowledged commit, and a read does not prove
// that it lasts.
func (r *Row) Acquired(to lease.Owner) Applied {
	held := !r.Owner.IsZero() && r.Holder.Remaining > 0
	switch {
	case !r.Exists:
		return Applied{Outcome: Absent}
	case r.Bad || !r.Here:
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

// left answers a release or a hand-over by its row, without a write.
func (r *Row) left(c *Change) Applied {
	switch {
	case r.Bad:
		return Applied{Outcome: Alone}
	case !r.Here || r.Owner != c.From.Owner || c.From.Token != 0 && c.From.Token != r.Token:
		return Applied{Outcome: Gone}
	case !c.Releases() && r.Token >= lease.MaxToken-1:
		return Applied{Outcome: Alone}
	}
	return Applied{Outcome: Possible, Token: r.Token}
}

// Hopeless reports whether the outcomes of Look rule out that every change is made now. What is
// done already is an earlier try's. The rest of that try was lost since, and to make up for it
// would grant two parts that were never held together.
func Hopeless(found []Applied) bool {
	return slices.ContainsFunc(found, func(a Applied) bool { return a.Outcome != Possible })
}

// Hopeful reports whether the outcomes of Look allow n changes to be made now, and none was made by
// an earlier try.
func Hopeful(found []Applied, n int) bool {
	for _, a := range found {
		switch a.Outcome {
		case Found:
			return false
		case Possible:
			n--
		}
	}
	return n <= 0
}
