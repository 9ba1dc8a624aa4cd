package sqlite

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Setup makes the session's settings: synchronous=FULL, because WAL mode without it forgets the
// last commits in a power failure, and a short wait for the file's write lock. The wait is short
// because the lane has other work; the store tries again.
func (d *database) Setup(ctx context.Context, s *sqlstore.Session) error {
	abandon(ctx, s.Conn())
	for _, pragma := range []string{`PRAGMA busy_timeout = 100`, `PRAGMA synchronous = FULL`} {
		if _, err := s.Conn().ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return s.Conn().Raw(func(c any) error {
		// Modernc's own, and no wrapper that may wait for a network
		_, s.Local = c.(interface{ Serialize() ([]byte, error) })
		return nil
	})
}

// abandon ends a transaction that the application left open on a connection it returned to its
// pool, because our statements would be part of it and never be committed. If there is none, SQLite
// returns an error.
func abandon(ctx context.Context, conn *sql.Conn) { _, _ = conn.ExecContext(ctx, `ROLLBACK`) }
