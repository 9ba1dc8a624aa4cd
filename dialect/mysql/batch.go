package mysql

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Apply reads the rows of which it is not told what to expect, and changes in one more statement
// those that can be changed. If that did not change all of them, a third finds out which it
// changed. None of these leaves anything locked, so a client may vanish between any two of them.
func (d *database) Apply(
	ctx context.Context, s *conn.Session, changes []sqlstore.Change, all bool,
) ([]sqlstore.Applied, error) {
	out, err := sqlstore.Look(ctx, s, d, changes)
	if err != nil || all && sqlstore.Hopeless(out) {
		return out, err
	}
	t := tries(s, changes, out)
	if len(t.changes) == 0 {
		return out, nil
	}
	if all {
		return out, d.applyAll(ctx, s, t)
	}
	return out, d.apply(ctx, s, t)
}

// apply changes what it can. What was tried with a token that the row does not have is tried once
// more with the row's.
func (d *database) apply(ctx context.Context, s *conn.Session, t *try) error {
	if err := d.applySome(ctx, s, t); err != nil {
		return err
	}
	again := t.mistaken()
	if len(again.changes) == 0 {
		return nil
	}
	// What was certainly not made runs again alone. The answers to the first statement stay: a
	// lease that it found gone is no matter of doubt.
	if err := d.applySome(ctx, s, again); sqlstore.Judge(d, err).Class == sqlstore.Unknown {
		return written(err)
	}
	return nil
}

// applySome changes what it can.
func (d *database) applySome(ctx context.Context, s *conn.Session, t *try) error {
	batch := newBatch()
	rows, err := s.Change(ctx, d.Text("apply"), batch[:], sqlstore.ChangeList(t.changes))
	if err != nil {
		return err
	}
	return d.settle(ctx, s, t, batch, rows)
}

// ApplyWithin reads nothing first: a slot is rarely lost, and its token is known.
func (d *database) ApplyWithin(
	ctx context.Context, s *conn.Session, changes []sqlstore.Change, within *sqlstore.Within,
) ([]sqlstore.Applied, error) {
	out := make([]sqlstore.Applied, len(changes))
	for i := range out {
		out[i] = sqlstore.Applied{Outcome: sqlstore.Possible, Token: changes[i].From.Token}
	}
	t, batch := tries(s, changes, out), newBatch()
	rows, err := s.Change(ctx, d.Text("apply-within"), batch[:], []byte(within.Name),
		within.Generation, sqlstore.ChangeList(t.changes))
	if err != nil || rows == 0 { // the limit has changed, or others hold all of the slots by now
		return out, err
	}
	return out, d.settle(ctx, s, t, batch, rows)
}

// applyAll changes every row or none. Any other count would break the statement's own promise.
func (d *database) applyAll(ctx context.Context, s *conn.Session, t *try) error {
	rows, err := s.Change(ctx, d.Text("apply-all"), sqlstore.ChangeList(t.changes), len(t.changes))
	switch {
	case err != nil:
		return err
	case rows == int64(len(t.changes)):
		t.made()
		return nil
	case rows != 0:
		return errUntold
	}
	found, err := sqlstore.ReadRows(ctx, s, d, sqlstore.Keys(t.changes))
	if err != nil {
		return err
	}
	for n := range t.changes {
		t.answer(n, unmade(&t.changes[n], &found[n], true))
	}
	return nil
}

// ApplyAny reads the rows, and takes n of those that can be taken in one more statement. A single
// one is named by the statement's insert id, and several by its note.
func (d *database) ApplyAny(
	ctx context.Context, s *conn.Session, changes []sqlstore.Change, n int,
	within *sqlstore.Within,
) ([]sqlstore.Applied, error) {
	out, err := sqlstore.Look(ctx, s, d, changes)
	if err != nil || !sqlstore.Hopeful(out, n) {
		return out, err
	}
	t, batch := tries(s, changes, out), newBatch()
	section, args := takeSome(t, batch, n, within)
	res, err := s.Exec(ctx, d.Text(section), args...)
	if err != nil {
		return out, err
	}
	count, err := res.RowsAffected()
	switch {
	case err != nil || count != 0 && count != int64(n):
		return out, errUntold
	case count == 0: // others have taken or locked them since
		return out, nil
	case count == 1:
		return out, t.madeOne(res.LastInsertId())
	}
	return out, d.madeSome(ctx, s, t, batch, count)
}

// takeSome is the statement that takes n of the changes.
func takeSome(t *try, batch [16]byte, n int, within *sqlstore.Within) (section string, args []any) {
	list := sqlstore.ChangeList(t.changes)
	if within == nil {
		return "apply-any", []any{batch[:], list, n, n}
	}
	return "apply-any-within",
		[]any{batch[:], []byte(within.Name), within.Generation, list, n, n}
}

// madeOne answers the change whose number the statement has returned.
func (t *try) madeOne(number int64, err error) error {
	if err != nil || number < 1 || number > int64(len(t.changes)) {
		return errUntold
	}
	t.answer(int(number-1), t.done(&t.changes[number-1]))
	return nil
}

// madeSome answers the changes that the statement has noted.
func (d *database) madeSome(
	ctx context.Context, s *conn.Session, t *try, batch [16]byte, count int64,
) error {
	note, _, err := d.readApplied(ctx, s, sqlstore.Keys(t.changes))
	if err != nil {
		return err
	}
	made, err := noted(note, batch, count, len(t.changes))
	for i := range made {
		if made[i] {
			t.answer(i, t.done(&t.changes[i]))
		}
	}
	return err
}

// try is the part of a batch that is worth a write: its changes, each with the token that its row
// must have, and where each is answered.
type try struct {
	session *conn.Session
	changes []sqlstore.Change
	at      []int
	out     []sqlstore.Applied
}

func tries(s *conn.Session, changes []sqlstore.Change, out []sqlstore.Applied) *try {
	t := &try{session: s, out: out}
	for i, c := range changes {
		if out[i].Outcome == sqlstore.Possible {
			c.From.Token = out[i].Token
			t.changes, t.at = append(t.changes, c), append(t.at, i)
		}
	}
	return t
}

// mistaken returns the acquires whose rows were expected to have another token. The rows are free,
// and were read after the statement.
func (t *try) mistaken() *try {
	again := &try{session: t.session, out: t.out}
	for n, c := range t.changes {
		a := &t.out[t.at[n]]
		if c.Expects == 0 || a.Outcome != sqlstore.Alone || a.Token == 0 || a.Token == c.Expects {
			continue
		}
		c.Expects, c.From.Token = 0, a.Token
		again.changes, again.at = append(again.changes, c), append(again.at, t.at[n])
	}
	return again
}

// made answers that every change was made.
func (t *try) made() {
	for n := range t.changes {
		t.answer(n, t.done(&t.changes[n]))
	}
}

func (t *try) answer(n int, a sqlstore.Applied) { t.out[t.at[n]] = a }

// done answers a change that was made. A release leaves the token as it is.
func (t *try) done(c *sqlstore.Change) sqlstore.Applied {
	token := c.From.Token
	if !c.Releases() {
		token = t.session.Next(token)
	}
	return sqlstore.Applied{Outcome: sqlstore.Done, Token: token}
}

// Create makes rows in one statement, and reads the tokens they have got.
func (d *database) Create(ctx context.Context, s *conn.Session, changes []sqlstore.Change) (
	[]sqlstore.Applied, error,
) {
	out := make([]sqlstore.Applied, len(changes))
	n, err := s.Change(ctx, d.Text("create"), sqlstore.ChangeList(changes))
	if err != nil || n == 0 {
		return out, err
	}
	rows, err := sqlstore.ReadRows(ctx, s, d, sqlstore.Keys(changes))
	if err != nil {
		return out, written(err)
	}
	if n < int64(len(changes)) {
		if err := d.confirmMade(ctx, s, changes, rows); err != nil {
			return out, err
		}
	}
	for i := range rows {
		// An owner is new for every request, so a row that names it is the request's. A
		// free row is certainly this batch's only if the batch made all rows.
		if c := &changes[i]; rows[i].Owner == c.To && rows[i].Here &&
			(!c.Releases() || n == int64(len(changes))) {
			out[i] = sqlstore.Applied{Outcome: sqlstore.Done, Token: rows[i].Token}
		}
	}
	return out, nil
}

// confirmMade waits for an acknowledged commit that comes after rows that were read to be their
// requesters'. If the statement before did not make all rows, an earlier try may have made one of
// them, and its commit was not acknowledged. One commit covers all.
func (d *database) confirmMade(
	ctx context.Context, s *conn.Session, changes []sqlstore.Change, rows []sqlstore.Row,
) error {
	for i := range rows {
		c := &changes[i]
		if c.Releases() || !rows[i].Here || rows[i].Owner != c.To {
			continue
		}
		ok, err := sqlstore.Confirm(ctx, s, d,
			lease.Lease{Key: c.From.Key, Owner: c.To, Token: rows[i].Token}, 0)
		if err != nil || ok {
			return err
		}
		return errUntold // the row has changed since it was read
	}
	return nil
}
