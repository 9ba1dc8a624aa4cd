package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// hangUp is how much longer than the server the client waits.
const hangUp = 300 * time.Millisecond

// ClaimOnce makes the key's row, or reads the one there is. It rounds the wait up to whole seconds.
// MySQL has no such wait for a statement, so the client ends it by closing the connection: the
// server can then only roll back what it still waits for.
func (d *database) ClaimOnce(
	ctx context.Context, tx lease.Runner, c sqlstore.OnceClaim, wait time.Duration,
) (sqlstore.OnceRow, error) {
	seconds := int(conn.RoundUp(wait, time.Second))
	bounded, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+hangUp)
	defer cancel()
	text := strings.Replace(d.Text("once-claim"), "@wait", strconv.Itoa(seconds), 1)
	_, err := tx.Exec(bounded, text, c.Args())
	switch {
	case err == nil:
		return sqlstore.OnceRow{State: sqlstore.OnceMine}, nil
	case isDuplicate(err):
		return sqlstore.LookOnce(ctx, tx, d, c)
	case isLockWait(err), bounded.Err() != nil && ctx.Err() == nil:
		return sqlstore.OnceRow{State: sqlstore.OnceInFlight}, nil
	case d.Collided(err):
		return sqlstore.OnceRow{State: sqlstore.OnceInFlight}, err
	}
	return sqlstore.OnceRow{}, err
}

// peekOnce reports whether another transaction has the key's row locked.
func (d *database) peekOnce(ctx context.Context, tx lease.Runner, c sqlstore.OnceClaim) (
	inFlight bool, err error,
) {
	err = tx.QueryOne(ctx, d.Text("once-peek"), []any{c.Tenant, c.Key}, new(int))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case isNumber(err, 3572):
		return true, nil
	}
	return false, err
}

func (d *database) largestValue(ctx context.Context, on lease.Runner) (n int64, err error) {
	err = on.QueryOne(ctx, `SELECT @@SESSION.max_allowed_packet`, nil, &n)
	return n, err
}

// Overtaken reports whether a row has changed since the transaction's snapshot. A deadlock is not
// that: after it the row may be as it was.
func (d *database) Overtaken(err error) bool { return isNumber(err, 1020) }

// Collided reports whether err is a deadlock, or a row that has changed since the transaction's
// snapshot. After either of them the transaction is rolled back, and what follows would be
// committed statement by statement.
func (d *database) Collided(err error) bool { return isNumber(err, 1213) || isNumber(err, 1020) }
