package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sort"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Apply makes changes in one statement. The commit may be relaxed if it grants nothing.
func (d *database) Apply(
	ctx context.Context, s *conn.Session, changes []sqlstore.Change, all bool,
) ([]sqlstore.Applied, error) {
	a := applied{out: make([]sqlstore.Applied, len(changes))}
	a.dest = []any{&a.n, &a.outcome, &a.token, &a.awaited, &a.note, &a.remaining}
	relaxed := s.Relaxed && sqlstore.OnlyReleases(changes)
	args := append(changeArrays(changes), conn.Bytes(s.Process), all, relaxed)
	err := s.Query(ctx, d.Text("apply"), args, a.scan)
	if err == nil && a.answers != len(changes) {
		err = fmt.Errorf("apply: %d answers to %d changes", a.answers, len(changes))
	}
	return a.out, err
}

// ApplyAny makes n of the changes in one statement.
func (d *database) ApplyAny(
	ctx context.Context, s *conn.Session, changes []sqlstore.Change, n int,
	within *sqlstore.Within,
) ([]sqlstore.Applied, error) {
	a := applied{out: make([]sqlstore.Applied, len(changes))}
	a.dest = []any{&a.n, &a.outcome, &a.token, &a.awaited, &a.note, &a.remaining}
	arrays := changeArrays(changes)
	args := []any{arrays[0], arrays[3], arrays[4], arrays[5], n}
	section := "apply-any"
	if within != nil {
		section, args = "apply-any-within", append(args, []byte(within.Name), within.Generation)
	}
	err := s.Query(ctx, d.Text(section), args, a.scan)
	made := 0
	for i := range a.out {
		if a.out[i].Outcome == sqlstore.Done {
			made++
		}
	}
	if err == nil && (made != 0 && made != n || a.answers != len(changes) && a.answers != made) {
		err = fmt.Errorf("apply-any: %d answers to %d changes, and %d of %d made",
			a.answers, len(changes), made, n)
	}
	return a.out, err
}

// ApplyWithin hands slots over in one statement, which answers with what it made.
func (d *database) ApplyWithin(
	ctx context.Context, s *conn.Session, changes []sqlstore.Change, within *sqlstore.Within,
) ([]sqlstore.Applied, error) {
	a := applied{out: make([]sqlstore.Applied, len(changes))}
	a.dest = []any{&a.n, &a.outcome, &a.token, &a.awaited, &a.note, &a.remaining}
	args := append(changeArrays(changes), []byte(within.Name), within.Generation)
	return a.out, s.Query(ctx, d.Text("apply-within"), args, a.scan)
}

// applied reads the rows of the apply section into variables that it makes once.
type applied struct {
	out     []sqlstore.Applied
	answers int

	dest                  []any
	n, outcome, remaining int64
	token                 lease.Token
	awaited               bool
	note                  sql.RawBytes
}

func (a *applied) scan(row conn.Columns) error {
	bad := row.Scan(a.dest...)
	if bad != nil && !conn.IsBad(bad) {
		return bad
	}
	if a.n < 1 || a.n > int64(len(a.out)) {
		return fmt.Errorf("apply: an answer to change %d of %d", a.n, len(a.out))
	}
	got := sqlstore.Applied{
		Outcome: sqlstore.Outcome(a.outcome), Token: a.token,
		Awaited: a.awaited, Looked: true,
	}
	if bad != nil && got.Outcome != sqlstore.Done {
		got = sqlstore.Applied{} // the statement for one says what is wrong with its row
	}
	if got.Outcome == sqlstore.Held {
		got.Holder = lease.Holder{
			Note:      string(a.note),
			Remaining: max(0, conn.Duration(a.remaining)),
		}
	}
	a.out[a.n-1] = got
	a.answers++
	return nil
}

// Create makes rows in one statement.
func (d *database) Create(ctx context.Context, s *conn.Session, changes []sqlstore.Change) (
	[]sqlstore.Applied, error,
) {
	out := make([]sqlstore.Applied, len(changes))
	err := s.Query(ctx, d.Text("create"), createArrays(changes), func(row conn.Columns) error {
		var key sql.RawBytes
		var token lease.Token
		if err := row.Scan(&key, &token); err != nil {
			return err
		}
		i := sort.Search(len(changes),
			func(i int) bool { return changes[i].From.Key >= string(key) })
		if i == len(changes) || changes[i].From.Key != string(key) {
			return errors.New("create: a row that was not asked for")
		}
		out[i] = sqlstore.Applied{Outcome: sqlstore.Done, Token: token}
		return nil
	})
	return out, err
}

func changeArrays(changes []sqlstore.Change) []any {
	n := len(changes)
	keys, was, tokens := newArray(n), newArray(n), newArray(n)
	owners, notes, ttls := newArray(n), newArray(n), newArray(n)
	for i := range changes {
		c := &changes[i]
		keys.bytea(c.From.Key)
		was.owner(&c.From.Owner)
		tokens.int(int64(c.From.Token))
		owners.owner(&c.To)
		notes.text(c.Note)
		ttls.int(conn.Micros(c.TTL))
	}
	return []any{keys, was, tokens, owners, notes, ttls}
}

func createArrays(changes []sqlstore.Change) []any {
	var keys, owners, notes, ttls, buckets array
	for i := range changes {
		c := &changes[i]
		keys.bytea(c.From.Key)
		owners.owner(&c.To)
		notes.text(c.Note)
		ttls.int(conn.Micros(c.TTL))
		buckets.int(int64(lease.Bucket(c.From.Key)))
	}
	return []any{&keys, &owners, &notes, &ttls, &buckets}
}
