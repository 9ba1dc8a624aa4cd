package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sort"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Apply makes changes in one statement.
func (d *Dialect) Apply(ctx context.Context, s *dialect.Session, changes []dialect.Change, all bool) ([]dialect.Applied, error) {
	out := make([]dialect.Applied, len(changes))
	args := append(changeArrays(changes), dialect.Bytes(s.Process), all)
	answers := 0
	err := s.Query(ctx, d.Text("apply"), args, func(row dialect.Row) error {
		answers++
		return scanApplied(row, out)
	})
	if err == nil && answers != len(changes) {
		err = fmt.Errorf("apply: %d answers to %d changes", answers, len(changes))
	}
	return out, err
}

func scanApplied(row dialect.Row, out []dialect.Applied) error {
	var n, outcome, token, remaining int64
	var awaited bool
	var note sql.RawBytes
	if err := row.Scan(&n, &outcome, &token, &awaited, &note, &remaining); err != nil {
		return err
	}
	if n < 1 || n > int64(len(out)) {
		return fmt.Errorf("apply: an answer to change %d of %d", n, len(out))
	}
	a := dialect.Applied{Outcome: dialect.Outcome(outcome), Token: token, Awaited: awaited}
	if a.Outcome == dialect.Held {
		a.Holder = lease.Holder{Note: string(note), Remaining: max(0, dialect.Duration(remaining))}
	}
	out[n-1] = a
	return nil
}

// Create makes rows in one statement.
func (d *Dialect) Create(ctx context.Context, s *dialect.Session, changes []dialect.Change) ([]dialect.Applied, error) {
	out := make([]dialect.Applied, len(changes))
	err := s.Query(ctx, d.Text("create"), createArrays(changes), func(row dialect.Row) error {
		var key sql.RawBytes
		var token int64
		if err := row.Scan(&key, &token); err != nil {
			return err
		}
		i := sort.Search(len(changes), func(i int) bool { return changes[i].From.Key >= string(key) })
		if i == len(changes) || changes[i].From.Key != string(key) {
			return errors.New("create: a row that was not asked for")
		}
		out[i] = dialect.Applied{Outcome: dialect.Done, Token: token}
		return nil
	})
	return out, err
}

func changeArrays(changes []dialect.Change) []any {
	var keys, was, tokens, owners, notes, ttls array
	for i := range changes {
		c := &changes[i]
		keys.bytea([]byte(c.From.Key))
		was.owner(&c.From.Owner)
		tokens.int(c.From.Token)
		owners.owner(&c.To)
		notes.text(c.Note)
		ttls.int(dialect.Micros(c.TTL))
	}
	return []any{keys.close(), was.close(), tokens.close(), owners.close(), notes.close(), ttls.close()}
}

func createArrays(changes []dialect.Change) []any {
	var keys, owners, notes, ttls, buckets array
	for i := range changes {
		c := &changes[i]
		keys.bytea([]byte(c.From.Key))
		owners.owner(&c.To)
		notes.text(c.Note)
		ttls.int(dialect.Micros(c.TTL))
		buckets.int(int64(lease.Bucket(c.From.Key)))
	}
	return []any{keys.close(), owners.close(), notes.close(), ttls.close(), buckets.close()}
}
