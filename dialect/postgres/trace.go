package postgres

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// SetupTrace makes the settings of any session.
func (d *database) SetupTrace(ctx context.Context, s *conn.Session) error {
	return d.Setup(ctx, s)
}

// WriteTrace adds rows in one statement.
func (d *database) WriteTrace(ctx context.Context, s *conn.Session, rows []sqlstore.TraceRow) error {
	_, err := s.Exec(ctx, d.Text("trace-write"), traceArrays(rows)...)
	return err
}

func traceArrays(rows []sqlstore.TraceRow) []any {
	var ages, ids, keys, events, tokens, owners, notes, numbers, details array
	for i := range rows {
		r := &rows[i]
		ages.int(r.Age.Microseconds())
		ids.int(r.ID)
		keys.bytea(r.Key)
		events.text(r.Event)
		tokens.int(int64(r.Token))
		owners.bytea(string(r.Owner[:]))
		notes.text(r.Note)
		numbers.int(r.Number)
		details.text(r.Detail)
	}
	return []any{&ages, &ids, &keys, &events, &tokens, &owners, &notes, &numbers, &details}
}

// TraceBefore encodes a time in µs and an id.
func (d *database) TraceBefore(micros, id int64) []any { return []any{micros, id} }
