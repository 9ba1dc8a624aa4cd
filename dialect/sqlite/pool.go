package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// waits refuses a pool whose connections do not wait for another writer. Of 240 fenced writes by 8
// goroutines, some 170 fail on such a pool. A program that tries again by itself can set 1 ms.
func waits(ctx context.Context, conn *sql.Conn, path string) (_ []string, err error) {
	var ms int64
	err = conn.QueryRowContext(ctx, `SELECT timeout FROM pragma_busy_timeout`).Scan(&ms)
	if err != nil || ms > 0 {
		return nil, err
	}
	return nil, fmt.Errorf("%w: the pool has connections with busy_timeout 0, on which a write that "+
		"meets another fails at once with SQLITE_BUSY; open it with sqlite.Open(%q), or with "+
		"sql.Open(\"sqlite\", %q) and your other settings, or set busy_timeout(1) if you try again "+
		"yourself; a PRAGMA that is sent once sets one connection", lease.ErrConfig, path, dsn(path))
}

// probePool checks a connection as the application gets it. The first one of a pool may have been
// set by a PRAGMA that the others have not had.
func (d *database) probePool(ctx context.Context, conn *sql.Conn) error {
	path, err := file(ctx, conn)
	if err == nil {
		_, err = waits(ctx, conn, path)
	}
	return err
}

// deferred warns of a pool whose transactions begin without the write lock.
func deferred(ctx context.Context, conn *sql.Conn, path string) (warnings []string, err error) {
	is, err := beginsDeferred(ctx, conn)
	if err != nil || !is {
		return nil, err
	}
	return []string{fmt.Sprintf("transactions begin deferred: one that reads before it writes or "+
		"fences fails with SQLITE_BUSY if another has written meanwhile, however long busy_timeout "+
		"is; open the pool with sqlite.Open(%q), or with sql.Open(\"sqlite\", %q) and your other "+
		"settings", path, dsn(path))}, nil
}

// beginsDeferred begins a transaction as the application would and rolls it back. Inside a
// transaction that has begun to read or write, SQLite refuses a checkpoint, even one that does
// nothing. That another connection has the write lock is an answer too: a deferred transaction does
// not ask for it.
func beginsDeferred(ctx context.Context, conn *sql.Conn) (is bool, err error) {
	abandon(ctx, conn)
	back, err := impatient(ctx, conn)
	if err != nil {
		return false, err
	}
	defer func() { err = oneline.Join(err, back()) }()
	tx, err := conn.BeginTx(ctx, nil)
	if isBusy(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var busy, log, done int
	err = tx.QueryRowContext(ctx, `PRAGMA wal_checkpoint(NOOP)`).Scan(&busy, &log, &done)
	is = err == nil
	if isBusy(err) || isReadOnly(err) { // SQLITE_LOCKED is what says that it is not deferred
		err = nil
	}
	return is, oneline.Join(err, tx.Rollback())
}

// impatient has the connection wait for no lock, until back is called.
func impatient(ctx context.Context, conn *sql.Conn) (back func() error, err error) {
	var before int64
	if err := conn.QueryRowContext(ctx, `PRAGMA busy_timeout`).Scan(&before); err != nil {
		return nil, err
	}
	set := func(ctx context.Context, ms int64) error {
		_, err := conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, ms))
		return err
	}
	return func() error { return set(context.WithoutCancel(ctx), before) }, set(ctx, 0)
}
