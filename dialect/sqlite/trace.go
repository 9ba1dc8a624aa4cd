package sqlite

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// SetupTrace has the session wait longer for the file's write lock than a pinned connection does.
func (d *database) SetupTrace(ctx context.Context, s *conn.Session) error {
	if err := d.Setup(ctx, s); err != nil {
		return err
	}
	_, err := s.Conn().ExecContext(ctx, `PRAGMA busy_timeout = 1000`)
	return err
}

// WriteTrace adds rows one by one in one transaction: see Apply.
func (d *database) WriteTrace(ctx context.Context, s *conn.Session, rows []sqlstore.TraceRow) error {
	return s.InTx(ctx, func() error {
		for i := range rows {
			r := &rows[i]
			_, err := s.Exec(ctx, d.Text("trace-write"), r.Age.Milliseconds(), r.ID, []byte(r.Key),
				r.Event, r.Token, conn.Bytes(r.Owner), r.Note, r.Number, r.Detail)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TraceBefore encodes a time in ms, which the statements name twice, and an id.
func (d *database) TraceBefore(micros, id int64) []any {
	return []any{micros / 1000, micros / 1000, id}
}
