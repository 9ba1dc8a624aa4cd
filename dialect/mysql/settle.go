package mysql

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/dialect"
)

// errUntold is as good as a lost reply: the outcome is unknown, and each caller asks again.
var errUntold = errors.New("some rows changed again before it could be seen which of them the batch had changed")

// settle tells which changes make up the count of those that were made. Most can be told from their rows. The rest are covered: somebody
// else has been granted the row since the look, either after us, and then all was well, or before us. That a released key is taken
// again at once is common, and that a lease is lost in this moment is rare, so that as a rule they all were made, or none was, and
// the count says which.
func (d *Dialect) settle(ctx context.Context, s *dialect.Session, t *try, count, clock int64, all bool) error {
	rows, err := dialect.ReadRows(ctx, s, d, dialect.Keys(t.changes))
	if err != nil {
		return err
	}
	var hidden []int
	for n := range t.changes {
		a, left := judge(&t.changes[n], &rows[n], clock)
		if a.Outcome == dialect.Possible && !all {
			a.Outcome = dialect.Alone
		}
		t.answer(n, a)
		switch left {
		case seen:
			count--
		case covered:
			hidden = append(hidden, n)
		}
	}
	if count == 0 {
		return nil
	}
	if count != int64(len(hidden)) {
		return errUntold
	}
	for _, n := range hidden {
		t.answer(n, done(&t.changes[n]))
	}
	return nil
}

// trace is what a row shows of a change.
type trace uint8

const (
	none    trace = iota // it was not made
	seen                 // it was made by this batch
	covered              // it may have been, and is answered as if it had not
)

// judge tells from a row what became of a change that may have been made at clock. Tokens never come back: while a row has the one that
// the change began with, nobody has been granted it since; if it has the next, it was granted to whoever it names, or who has given it
// up, which nobody does before he is told; and a higher one says nothing of who had those between, unless it was granted before clock.
func judge(c *dialect.Change, r *dialect.Row, clock int64) (dialect.Applied, trace) {
	result := c.From.Token
	if !c.Releases() {
		result++
	}
	switch {
	case r.Home && r.Token == result && r.Owner == c.To && r.Changed == clock:
		return done(c), seen
	case r.Exists && r.Home && r.Changed < clock: // and not since: what was not so already when the batch came is no work of it
		return unmade(c, r), none
	case !r.Exists || !r.Home || r.Token > result:
		return unmade(c, r), covered
	}
	return unmade(c, r), none
}

// unmade is the answer to a change that was not made, at least not by this batch. If the row is what it should be for it, somebody had
// it locked.
func unmade(c *dialect.Change, r *dialect.Row) dialect.Applied {
	switch {
	case c.Acquires():
		return r.Acquired(c.To)
	case r.Home && r.Owner == c.From.Owner && r.Token == c.From.Token:
		return dialect.Applied{Outcome: dialect.Alone}
	}
	return dialect.Applied{Outcome: dialect.Gone}
}
