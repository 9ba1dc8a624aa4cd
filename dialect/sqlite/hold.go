package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// LockRows locks nothing: a transaction with the file's write lock has every row.
func (d *database) LockRows(table, column string, n int, _ time.Duration) string {
	return sqlstore.In(table, column, n)
}

// AtOnce has no limit but the statement's.
func (d *database) AtOnce() int { return math.MaxInt }

// TryRows does not either.
func (d *database) TryRows(table, column string, n int) string {
	return sqlstore.In(table, column, n)
}

// Skipping changes nothing.
func (d *database) Skipping(query string) string { return query }

// Patience sets busy_timeout, which belongs to the connection and not to the transaction.
func (d *database) Patience(ctx context.Context, tx lease.Runner, wait time.Duration) (
	restore func(context.Context) error, err error,
) {
	var before int64
	if err := tx.QueryOne(ctx, `PRAGMA busy_timeout`, nil, &before); err != nil {
		return nil, err
	}
	set := func(ctx context.Context, ms int64) error {
		var now int64
		return tx.QueryOne(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, ms), nil, &now)
	}
	return func(ctx context.Context) error { return set(ctx, before) }, set(ctx, millis(wait))
}

// Waited distinguishes a writer that took too long from a snapshot that another has written after,
// against which waiting is useless.
func (d *database) Waited(err error) sqlstore.Wait {
	var e *sqlite.Error
	switch {
	case errors.As(err, &e) && e.Code() == sqlite3.SQLITE_BUSY_SNAPSHOT:
		return sqlstore.TooLate
	case isBusy(err):
		return sqlstore.TooLong
	}
	return sqlstore.NoWait
}
