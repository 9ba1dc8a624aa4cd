package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// EndBlockers finds and ends in one statement.
func (d *database) EndBlockers(
	ctx context.Context, s *conn.Session, row sqlstore.Expired, waiter int64,
	least time.Duration,
) ([]sqlstore.Blocker, error) {
	return sqlstore.Blockers(ctx, s, row.Section(d, "evict"),
		[]any{[]byte(row.Key), waiter, conn.Micros(least)})
}

// MayEvict checks whether the user may call pg_terminate_backend. Every user may end their own
// sessions, unless that right was revoked.
func (d *database) MayEvict(ctx context.Context, conn *sql.Conn) (grant string, err error) {
	var may bool
	err = conn.QueryRowContext(ctx,
		`SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc
			WHERE proname = 'pg_terminate_backend'`).Scan(&may)
	if err == nil && !may {
		grant = "GRANT EXECUTE ON FUNCTION pg_terminate_backend TO the user"
	}
	return grant, err
}
