package postgres

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// maxMillis is the longest limit that the server accepts, some 24 days.
const maxMillis = 1<<31 - 1

func millis(d time.Duration) string {
	return strconv.FormatInt(min(maxMillis, max(1, conn.RoundUp(d, time.Millisecond))), 10)
}

// silence sets idle_in_transaction_session_timeout, in ms.
func (d *database) silence(ctx context.Context, s *conn.Session, limit time.Duration) error {
	_, err := s.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', $1, false)`,
		millis(limit))
	return err
}

// LockRows locks in the column's order, because the sort comes before the lock.
func (d *database) LockRows(table, column string, n int, _ time.Duration) string {
	return sqlstore.In(table, column, n) + ` FOR UPDATE`
}

// AtOnce has no limit but the protocol's, of 65,535: the order is kept only within one statement.
func (d *database) AtOnce() int { return math.MaxInt }

// TryRows leaves out what is locked.
func (d *database) TryRows(table, column string, n int) string {
	return d.Skipping(sqlstore.In(table, column, n))
}

// Skipping is FOR UPDATE SKIP LOCKED.
func (d *database) Skipping(query string) string { return query + ` FOR UPDATE SKIP LOCKED` }

// Patience sets lock_timeout, which bounds each row, and statement_timeout, which bounds all of
// them. In a transaction that an error has ended nothing can be restored, and need not be, because
// its rollback does so. Without a transaction, the settings are gone at once.
func (d *database) Patience(ctx context.Context, tx lease.Runner, wait time.Duration) (
	restore func(context.Context) error, err error,
) {
	const set = `WITH old AS MATERIALIZED (
			SELECT current_setting('lock_timeout') AS l, current_setting('statement_timeout') AS s)
		SELECT l, s, set_config('lock_timeout', $1, true),
			set_config('statement_timeout', $2, true) FROM old`
	var lock, statement, given, now, none string
	w := millis(wait)
	if err := tx.QueryOne(ctx, set, []any{w, w}, &lock, &statement, &given, &none); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := tx.QueryOne(ctx, set, []any{lock, statement}, &now, &none, &none, &none)
		switch {
		case isState(err, "25P02"):
			return nil
		case err == nil && now != given:
			return fmt.Errorf("%w: no transaction is open on this connection, so what was locked "+
				"is let go already: send BEGIN first", lease.ErrConfig)
		}
		return err
	}, nil
}

// Waited knows lock_timeout and statement_timeout.
func (d *database) Waited(err error) sqlstore.Wait {
	if isState(err, "55P03") || isState(err, "57014") {
		return sqlstore.TooLong
	}
	return sqlstore.NoWait
}
