package mysql

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// SetupTrace bounds what Setup leaves unbounded: a long reading.
func (d *database) SetupTrace(ctx context.Context, s *conn.Session) error {
	if err := d.Setup(ctx, s); err != nil {
		return err
	}
	set := `SET SESSION max_execution_time = 5000`
	if s.Flavor == mariaDB {
		set = `SET SESSION max_statement_time = 5`
	}
	_, err := s.Conn().ExecContext(ctx, set)
	return err
}

// WriteTrace adds rows in one statement.
func (d *database) WriteTrace(ctx context.Context, s *conn.Session, rows []sqlstore.TraceRow) error {
	_, err := s.Exec(ctx, d.Text("trace-write"), sqlstore.TraceList(rows))
	return err
}

// TraceBefore encodes a time in µs, which the statements name twice, and an id.
func (d *database) TraceBefore(micros, id int64) []any { return []any{micros, micros, id} }
