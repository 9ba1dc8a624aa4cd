package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"modernc.org/sqlite"
)

// Probe refuses what would lose a granted lock and warns of what might.
func (d *database) Probe(ctx context.Context, conn *sql.Conn) (f sqlstore.Facts, err error) {
	var version string
	err = conn.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version)
	if ctx.Err() != nil || errors.As(err, new(*sqlite.Error)) {
		return f, err // SQLite itself says so
	}
	if err != nil {
		return f, fmt.Errorf("%w: sqlite.New() speaks to SQLite; this database answers %w",
			lease.ErrWrongDialect, err)
	}
	f.Server = "SQLite " + version
	if err := file(ctx, conn); err != nil {
		return f, err
	}
	if f.Warnings, err = doubts(ctx, conn); err == nil {
		f.SchemaVersion, err = sqlstore.ProbeTables(ctx, conn, d, d.settings.Names)
	}
	return f, err
}

func file(ctx context.Context, conn *sql.Conn) error {
	var path string
	err := conn.QueryRowContext(ctx,
		`SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	switch {
	case err != nil:
		return err
	case path == "":
		return fmt.Errorf(
			"%w: the database is in memory, where every connection has a database of its own and "+
				"nothing outlives the process; give it a file (in tests: "+
				"filepath.Join(t.TempDir(), \"app.db\"))", lease.ErrNotDurable)
	}
	var queryOnly bool
	if err := conn.QueryRowContext(ctx,
		`SELECT query_only FROM pragma_query_only`).Scan(&queryOnly); err != nil {
		return err
	}
	if queryOnly {
		return fmt.Errorf("%w: %s is open with query_only; leave that pragma out",
			lease.ErrReadOnly, path)
	}
	return writable(ctx, conn, path)
}

// writable writes and rolls back, because BEGIN IMMEDIATE alone succeeds on a read-only file. That
// another connection has the write lock is an answer too.
func writable(ctx context.Context, conn *sql.Conn, path string) error {
	abandon(ctx, conn)
	_, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`)
	if err == nil {
		_, err = conn.ExecContext(ctx, `PRAGMA user_version = 1`)
		_, end := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		err = oneline.Join(err, end)
	}
	switch {
	case isReadOnly(err):
		return fmt.Errorf(
			"%w: %s: %w; open it without mode=ro and immutable, as a user who may write to it "+
				"and to its folder", lease.ErrReadOnly, path, err)
	case isBusy(err):
		return nil
	}
	return err
}

// ProbeTable refuses a table that is not there.
func (d *database) ProbeTable(ctx context.Context, conn *sql.Conn, table string) error {
	var n int
	err := conn.QueryRowContext(ctx,
		`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?`,
		d.settings.Names.Prefix+table).Scan(&n)
	if err == nil && n == 0 {
		err = fmt.Errorf(
			"%w: there is no table %s; run schema.Migrate(ctx, db, sqlite.New()) or the files of "+
				"schema.FS first",
			lease.ErrNoSchema, d.settings.Names.Table(table, quote))
	}
	return err
}

func doubts(ctx context.Context, conn *sql.Conn) ([]string, error) {
	var mode string
	if err := conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return nil, err
	}
	if mode != "wal" {
		return []string{"journal_mode is " + mode + ": readers and the writer shut each other " +
			"out; open the file with _pragma=journal_mode(WAL)"}, nil
	}
	return nil, nil
}
