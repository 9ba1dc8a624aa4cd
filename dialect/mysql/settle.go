package mysql

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// errUntold is treated as a lost reply: the outcome is unknown, and each caller asks again.
var errUntold = errors.New("the server did not say which rows the batch has changed")

// newBatch returns a name that no other batch of the session has, so that its note cannot be taken
// for another batch's.
func newBatch() (name [16]byte) {
	id := rand.Uint64()
	var b [8]byte
	for i := range b {
		b[i] = byte(id >> (8 * i))
	}
	hex.Encode(name[:], b[:])
	return name
}

// settle answers a batch. A count of all rows needs no further evidence: every row that the
// statement changes belongs to one change, and no two changes are for one key, so each has changed
// its own row. If only some changes were made, those that the statement has noted were, and no
// others. The present row is no evidence of what the batch did, because a statement that
// began before ours may have changed it since, with an earlier time stamp. So the rows decide only
// how a change that was not made is answered.
func (d *database) settle(
	ctx context.Context, s *conn.Session, t *try, batch [16]byte, count int64,
) error {
	if count == int64(len(t.changes)) {
		t.made()
		return nil
	}
	note, rows, err := d.readApplied(ctx, s, sqlstore.Keys(t.changes))
	if err != nil {
		return err
	}
	made, err := noted(note, batch, count, len(t.changes))
	if err != nil {
		return err
	}
	for n := range t.changes {
		if made[n] {
			t.answer(n, t.done(&t.changes[n]))
		} else {
			t.answer(n, unmade(&t.changes[n], &rows[n], false))
		}
	}
	return nil
}

// readApplied reads the session's note, and the rows as they are, after a write.
func (d *database) readApplied(ctx context.Context, s *conn.Session, keys []string) (
	note string, rows []sqlstore.Row, err error,
) {
	rows = make([]sqlstore.Row, len(keys))
	err = s.Query(ctx, d.Text("applied"), []any{d.List(keys)}, func(r conn.Columns) error {
		n, row, err := sqlstore.ScanRow(r)
		switch {
		case err != nil:
			return err
		case n < 0 || n > int64(len(rows)):
			return fmt.Errorf("applied: an answer to key %d of %d", n, len(rows))
		case n == 0:
			note = row.Holder.Note
		default:
			rows[n-1] = row
		}
		return nil
	})
	return note, rows, written(err)
}

// written marks an error that came after a write which has been committed: a statement that was
// certainly not sent says nothing of the one before.
func written(err error) error {
	if err == nil {
		return nil
	}
	return conn.Unsettled{Err: err, Committing: true}
}

// noted reads from a batch's note the numbers of the changes that the batch has made. The note of
// another batch is no evidence, nor is one whose count of different numbers is not the count of
// changed rows: a server that has run the statement twice, as Galera may, has also noted what it
// then rolled back.
func noted(note string, batch [16]byte, count int64, changes int) (made []bool, err error) {
	made = make([]bool, changes)
	if count == 0 {
		return made, nil
	}
	numbers := strings.Fields(note)
	if len(numbers) == 0 || numbers[0] != string(batch[:]) || int64(len(numbers)-1) != count {
		return nil, errUntold
	}
	for _, number := range numbers[1:] {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > changes || made[n-1] {
			return nil, errUntold
		}
		made[n-1] = true
	}
	return made, nil
}

// unmade answers a change that the batch has not made. If the row is as the change expects it,
// another session had it locked.
func unmade(c *sqlstore.Change, r *sqlstore.Row, all bool) sqlstore.Applied {
	switch {
	case r.Bad:
		return sqlstore.Applied{Outcome: sqlstore.Alone}
	case c.Acquires():
		a := r.Acquired(c.To)
		if a.Outcome == sqlstore.Possible && !all {
			a.Outcome = sqlstore.Alone
		}
		return a
	case r.Here && r.Owner == c.From.Owner && r.Token == c.From.Token:
		return sqlstore.Applied{Outcome: sqlstore.Alone}
	}
	return sqlstore.Applied{Outcome: sqlstore.Gone}
}
