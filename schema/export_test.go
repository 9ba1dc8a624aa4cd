package schema

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/dialect"
)

// Kept are the tables that the way down leaves.
var Kept = kept

// Idle begins a migration, calls begun under its lock, and goes no further.
func Idle(ctx context.Context, db DB, d dialect.Dialect, begun func()) error {
	s, err := newSession(ctx, "schema.Idle", db, d)
	if err != nil {
		return err
	}
	return s.attempt(ctx, db, func(ctx context.Context, conn *sql.Conn) error {
		begun()
		<-ctx.Done()
		return ctx.Err()
	})
}

// Run runs statements as those of a next version would be run.
func Run(ctx context.Context, db DB, d dialect.Dialect, verb, statements string) error {
	s, err := newSession(ctx, "schema.Run", db, d)
	if err != nil {
		return err
	}
	return s.run(ctx, db, verb, func(ctx context.Context, conn *sql.Conn) error {
		return s.each(ctx, conn, s.dialect.Fill(statements), nil)
	})
}
