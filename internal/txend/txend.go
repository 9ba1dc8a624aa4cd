// Package txend ends transactions within a bound. Commit and Rollback of a *sql.Tx take no context,
// and drivers differ in what bounds them. pgx uses the context that the transaction was begun with,
// and SQLite waits for no network. go-sql-driver/mysql waits for the answer for as long as the TCP
// connection lasts, which can be hours.
package txend

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Commit commits tx. If the driver gives no way to bound that, COMMIT is sent as a statement, which
// ends with ctx and takes the connection with it; then Rollback has yet to be called, so that
// database/sql lets go of the connection.
//
// An error that is not the server's own, and not sql.ErrTxDone, leaves the outcome unknown.
func Commit(ctx context.Context, d *sqlstore.Dialect, tx *sql.Tx) error {
	if !d.UnwatchedTx {
		return tx.Commit()
	}
	_, err := tx.ExecContext(ctx, `COMMIT`)
	return err
}

// Rollback rolls tx back, or does nothing if it is over. It returns when database/sql has let go of
// the connection, or with ctx.
func Rollback(ctx context.Context, d *sqlstore.Dialect, tx *sql.Tx) {
	if !d.UnwatchedTx {
		_ = tx.Rollback()
		return
	}
	if _, err := tx.ExecContext(ctx, `ROLLBACK`); errors.Is(err, sql.ErrTxDone) {
		return
	}
	Free(ctx, tx)
}

// Free lets go of the connection of a transaction that Commit has committed, or of which the
// connection has gone. It returns when that is done, or with ctx: database/sql sends another
// ROLLBACK, which has no bound.
func Free(ctx context.Context, tx *sql.Tx) {
	freed := make(chan struct{})
	go func() {
		defer close(freed)
		_ = tx.Rollback()
	}()
	select {
	case <-freed:
	case <-ctx.Done():
	}
}
