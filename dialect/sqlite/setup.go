package sqlite

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/internal/conn"
)

// Setup makes the session's settings: synchronous=FULL, because WAL mode without it forgets the
// last commits in a power failure, and a short wait for the file's write lock. The wait is short
// because the pinned connection has other work; the store tries again.
func (d *database) Setup(ctx context.Context, s *conn.Session) error {
	abandon(ctx, s.Conn())
	for _, pragma := range []string{`PRAGMA busy_timeout = 100`, `PRAGMA synchronous = FULL`} {
		if _, err := s.Conn().ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	if s.Relaxed {
		relaxes, err := relaxes(ctx, s.Conn())
		if err != nil {
			return err
		}
		s.Relaxed = relaxes
	}
	return s.Conn().Raw(func(c any) error {
		// Modernc's own, and no wrapper that may wait for a network
		_, s.Local = c.(interface{ Serialize() ([]byte, error) })
		return nil
	})
}

// relaxes reports whether a release may be less durable than a grant. It is not without WAL: at
// synchronous=NORMAL a power failure can damage a file with a rollback journal. The mode stays,
// because SQLite refuses to leave WAL while another connection is open. Nor is it in a cache that
// connections share: grants of the others would not be durable meanwhile.
func relaxes(ctx context.Context, conn *sql.Conn) (bool, error) {
	var mode string
	err := conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode)
	if err != nil || mode != "wal" {
		return false, err
	}
	return ownsCache(ctx, conn)
}

// abandon ends a transaction that the application left open on a connection it returned to its
// pool, because our statements would be part of it and never be committed. If there is none, SQLite
// returns an error, which is no news.
func abandon(ctx context.Context, conn *sql.Conn) error {
	_, _ = conn.ExecContext(ctx, `ROLLBACK`)
	return nil
}
