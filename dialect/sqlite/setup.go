package sqlite

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Setup makes the session's settings: synchronous=FULL, because WAL mode without it forgets the
// last commits in a power failure, and a short wait for the file's write lock. The wait is short
// because the lane has other work; the store tries again. Without WAL a release is durable as a
// grant is: at synchronous=NORMAL a power failure can damage a file with a rollback journal. The
// mode stays, because SQLite refuses to leave WAL while another connection is open.
func (d *database) Setup(ctx context.Context, s *sqlstore.Session) error {
	abandon(ctx, s.Conn())
	for _, pragma := range []string{`PRAGMA busy_timeout = 100`, `PRAGMA synchronous = FULL`} {
		if _, err := s.Conn().ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	var mode string
	if err := s.Conn().QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return err
	}
	s.Relaxed = s.Relaxed && mode == "wal"
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
