package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// overtime is how much longer than the server the client waits, because lock_timeout restarts with
// each transaction that blocks it.
const overtime = 2 * time.Second

// ClaimOnce makes the key's row, or returns the row there is, in one statement; in two if a
// transaction that it waited for has made it.
func (d *database) ClaimOnce(
	ctx context.Context, tx lease.Runner, c sqlstore.OnceClaim, wait time.Duration,
) (r sqlstore.OnceRow, err error) {
	bound := max(1, wait.Milliseconds()) // 0 would be no bound at all
	bounded, cancel := context.WithTimeout(ctx, wait+overtime)
	defer cancel()
	err = tx.QueryOne(bounded, d.Text("once-claim"), c.Args(strconv.FormatInt(bound, 10)),
		append(r.Dest(), new(string))...)
	switch {
	case isState(err, "55P03"), err != nil && bounded.Err() != nil && ctx.Err() == nil:
		return sqlstore.OnceRow{State: sqlstore.OnceInFlight}, nil
	case d.Collided(err):
		return sqlstore.OnceRow{State: sqlstore.OnceInFlight}, err
	case err == nil && r.State == sqlstore.OnceAbsent:
		return sqlstore.LookOnce(ctx, tx, d, c)
	}
	return r, err
}

// Overtaken reports whether err is a serialization failure.
func (d *database) Overtaken(err error) bool { return isState(err, "40001") }

// Collided reports whether err is a serialization failure or a deadlock.
func (d *database) Collided(err error) bool {
	return isState(err, "40001") || isState(err, "40P01")
}
