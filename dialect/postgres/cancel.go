package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// relays notes on a session whether its driver asks the server to cancel when a context ends, and
// still reads the answer. A commit that waits for a synchronous standby is then answered with
// success and a warning, which database/sql drops. pgx with its default settings closes the
// connection instead, so that the outcome is unknown.
func relays(s *sqlstore.Session) error {
	return s.Conn().Raw(func(c any) error {
		conn := pgxOf(c)
		if conn == nil {
			s.Relays = true // another driver: lib/pq does
			return nil
		}
		build := conn.Config().BuildContextWatcherHandler
		if build != nil {
			_, closes := build(conn.PgConn()).(*pgconn.DeadlineContextWatcherHandler)
			s.Relays = !closes
		}
		return nil
	})
}
