package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

var _ sqlstore.Evictor = (*Dialect)(nil)

// AwaitRow waits for the row of an expired key.
func (d *Dialect) AwaitRow(ctx context.Context, s *sqlstore.Session, key string, waiting func(int64)) error {
	return sqlstore.AwaitRow(ctx, s, d, key, waiting)
}

// EndBlockers finds and ends in one statement.
func (d *Dialect) EndBlockers(ctx context.Context, s *sqlstore.Session, key string, waiter int64, least time.Duration) ([]sqlstore.Blocker, error) {
	return sqlstore.Blockers(ctx, s, d.Text("evict"), []any{[]byte(key), waiter, sqlstore.Micros(least)})
}

// MayEvict looks whether the user may call pg_terminate_backend, which everybody may for sessions of his own unless that was revoked.
func (d *Dialect) MayEvict(ctx context.Context, conn *sql.Conn) (grant string, err error) {
	var may bool
	err = conn.QueryRowContext(ctx, `SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc WHERE proname = 'pg_terminate_backend'`).Scan(&may)
	if err == nil && !may {
		grant = "GRANT EXECUTE ON FUNCTION pg_terminate_backend TO the user"
	}
	return grant, err
}
