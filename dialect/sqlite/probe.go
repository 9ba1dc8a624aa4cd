package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Probe refuses what would lose a granted lock and warns of what might.
func (d *Dialect) Probe(ctx context.Context, conn *sql.Conn) (f dialect.Facts, err error) {
	var version string
	if err := conn.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return f, fmt.Errorf("%w: sqlite.New() speaks to SQLite; this database answers %w", lease.ErrWrongDialect, err)
	}
	f.Server = "SQLite " + version
	if err := d.file(ctx, conn); err != nil {
		return f, err
	}
	if err := d.tables(ctx, conn); err != nil {
		return f, err
	}
	if f.Warnings, err = doubts(ctx, conn); err != nil {
		return f, err
	}
	f.SchemaVersion, err = dialect.SchemaVersionOf(ctx, conn, d)
	if err == nil && f.SchemaVersion == dialect.SchemaVersion {
		err = dialect.CheckComplete(ctx, conn, d)
	}
	return f, err
}

func (d *Dialect) file(ctx context.Context, conn *sql.Conn) error {
	var path string
	err := conn.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	switch {
	case err != nil:
		return err
	case d.names.Schema != "":
		return fmt.Errorf("%w: schema %q: SQLite has none; use a table prefix", lease.ErrConfig, d.names.Schema)
	case path == "":
		return fmt.Errorf("%w: the database is in memory, where every connection has a database of its own and nothing outlives the process; give it a file (in tests: filepath.Join(t.TempDir(), \"app.db\"))", lease.ErrNotDurable)
	}
	var readOnly bool
	if err := conn.QueryRowContext(ctx, `SELECT query_only FROM pragma_query_only`).Scan(&readOnly); err != nil || readOnly {
		return fmt.Errorf("%w: %s is open with query_only: %v", lease.ErrReadOnly, path, err)
	}
	return nil
}

func (d *Dialect) tables(ctx context.Context, conn *sql.Conn) error {
	for _, table := range []string{"rowlock", "rowlock_floor", "rowlock_meta"} {
		var n int
		err := conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?`, d.names.Prefix+table).Scan(&n)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%w: there is no table %s; run schema.Migrate(ctx, db, sqlite.New()) or the files of schema.FS first",
				lease.ErrNoSchema, d.names.Table(table, quote))
		}
	}
	return nil
}

func doubts(ctx context.Context, conn *sql.Conn) ([]string, error) {
	var mode string
	if err := conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return nil, err
	}
	if mode != "wal" {
		return []string{"journal_mode is " + mode + ": readers and the writer shut each other out; open the file with _pragma=journal_mode(WAL)"}, nil
	}
	return nil, nil
}
