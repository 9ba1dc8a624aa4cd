package schema

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/dialect"
)

// Run runs statements as those of a next version would be run.
func Run(ctx context.Context, db DB, d dialect.Dialect, verb, statements string) error {
	s, err := newSession(ctx, "schema.Run", db, d)
	if err != nil {
		return err
	}
	return s.run(ctx, db, verb, func(ctx context.Context, conn *sql.Conn) error {
		return s.each(ctx, conn, s.dialect.Fill(statements))
	})
}
