package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// ClaimOnce makes the key's row, or reads the one there is. The connection's busy_timeout bounds
// its wait. SQLite cannot tell whose transaction has the file's write lock, so the result is busy
// and never in flight.
func (d *database) ClaimOnce(
	ctx context.Context, tx lease.Runner, c sqlstore.OnceClaim, _ time.Duration,
) (r sqlstore.OnceRow, err error) {
	err = tx.QueryOne(ctx, d.Text("once-claim"), c.Args(), &r.State)
	if errors.Is(err, sql.ErrNoRows) {
		return sqlstore.LookOnce(ctx, tx, d, c)
	}
	return r, err
}

// Overtaken is false: SQLite locks the whole file.
func (d *database) Overtaken(error) bool { return false }

// Collided reports whether err is SQLite's busy.
func (d *database) Collided(err error) bool { return isBusy(err) }
