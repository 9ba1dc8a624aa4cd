package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ sqlstore.Once = (*Dialect)(nil)

// ClaimOnce makes the key's row, or looks at the one there is. It waits as long as the connection's busy_timeout has it: SQLite
// cannot tell whose transaction has the file's write lock, so that it is busy and never in flight.
func (d *Dialect) ClaimOnce(ctx context.Context, tx lease.Runner, c sqlstore.OnceClaim, _ time.Duration) (r sqlstore.OnceRow, err error) {
	err = tx.QueryOne(ctx, d.Text("once-claim"), c.Args(), &r.State)
	if errors.Is(err, sql.ErrNoRows) {
		return sqlstore.LookOnce(ctx, tx, d, c)
	}
	return r, err
}

// ProbeOnce sees that the table is there.
func (d *Dialect) ProbeOnce(ctx context.Context, conn *sql.Conn) error {
	return d.table(ctx, conn, "rowlock_once")
}

// Collided reports whether err is SQLite's busy.
func (d *Dialect) Collided(err error) bool { return isBusy(err) }
