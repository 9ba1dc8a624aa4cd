package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Server refuses what would lose a granted lock and warns of what might.
func (d *database) Server(ctx context.Context, conn *sql.Conn) (f sqlstore.Facts, err error) {
	err = conn.QueryRowContext(ctx, `SELECT 'SQLite ' || sqlite_version()`).Scan(&f.Server)
	if ctx.Err() != nil || d.Native(err) {
		return f, err // SQLite itself says so
	}
	if err != nil {
		return f, sqlstore.ProductError("sqlite.New()", "SQLite", err)
	}
	path, err := file(ctx, conn)
	if err = cmp.Or(err, checkName(path)); err != nil {
		return f, err
	}
	checks := []func(context.Context, *sql.Conn, string) ([]string, error){
		onlyQueries, writable, locks, waits, journal, deferred,
	}
	if adapter.IsReading(ctx) {
		checks = checks[3:] // the first ones write, and wait for a transaction that does
	}
	for _, check := range checks {
		warnings, err := check(ctx, conn, path)
		if err != nil {
			return f, err
		}
		f.Warnings = append(f.Warnings, warnings...)
	}
	return f, nil
}

// file returns the path of the database, which must have one.
func file(ctx context.Context, conn *sql.Conn) (path string, err error) {
	err = conn.QueryRowContext(ctx,
		`SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	if err == nil && path == "" {
		err = fmt.Errorf("%w: the database is in memory, where every connection has a database of "+
			"its own and nothing outlives the process; give it a file (in tests: "+
			"filepath.Join(t.TempDir(), \"app.db\"))", lease.ErrNotDurable)
	}
	return path, err
}

func onlyQueries(ctx context.Context, conn *sql.Conn, path string) (_ []string, err error) {
	var on bool
	err = conn.QueryRowContext(ctx, `SELECT query_only FROM pragma_query_only`).Scan(&on)
	if err == nil && on {
		err = fmt.Errorf("%w: %s is open with query_only; leave that pragma out", lease.ErrReadOnly, path)
	}
	return nil, err
}

// writable writes and rolls back, because BEGIN IMMEDIATE alone succeeds on a read-only file. That
// another connection has the write lock is an answer too.
func writable(ctx context.Context, conn *sql.Conn, path string) (_ []string, err error) {
	abandon(ctx, conn)
	_, err = conn.ExecContext(ctx, `BEGIN IMMEDIATE`)
	if err == nil {
		_, err = conn.ExecContext(ctx, `PRAGMA user_version = 1`)
		_, end := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		err = oneline.Join(err, end)
	}
	switch {
	case isReadOnly(err):
		return nil, fmt.Errorf("%w: %s: %w; open it without mode=ro and immutable, as a user who may "+
			"write to it and to its folder", lease.ErrReadOnly, path, err)
	case isBusy(err):
		return nil, nil
	}
	return nil, err
}

// ProbeTable refuses a table that is not there.
func (d *database) ProbeTable(ctx context.Context, conn *sql.Conn, table string) error {
	var n int
	err := conn.QueryRowContext(ctx,
		`SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ?`,
		d.settings.Names.Prefix+table).Scan(&n)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: there is no table %s; run schema.Migrate(ctx, db, "+
			"sqlite.New(dialect.Prefix(%q))) or the files of schema.FS first (if it was lost, schema.Down "+
			"before, which keeps the tokens or says why not)", lease.ErrNoSchema,
			d.settings.Names.Table(table, quote), d.settings.Names.Prefix)
	}
	return err
}

func journal(ctx context.Context, conn *sql.Conn, _ string) ([]string, error) {
	var mode string
	err := conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode)
	if err == nil && mode != "wal" {
		return []string{"journal_mode is " + mode + ": readers and the writer shut each other " +
			"out; open the file with _pragma=journal_mode(WAL)"}, nil
	}
	return nil, err
}

// Lacks returns nothing: SQLite has no users.
func (d *database) Lacks(context.Context, *sql.Conn, string) ([]string, error) { return nil, nil }

// location is the file at path as SQLite's URIs name it.
func location(path string) string {
	if folder, err := os.Getwd(); err == nil && !filepath.IsAbs(path) {
		path = folder + "/" + path // or the pool's later connections have another file after an os.Chdir
	}
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		path = "/" + path // file:/C:/app.db
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath()
}

// ownsCache reports whether the connection has a page cache of its own, and not one that it shares
// with other connections of the process (cache=shared). How durable a commit is belongs to the
// cache: a setting of one connection there is that of all.
//
// No pragma tells. SQLite refuses to attach a file in the cache that the connection has it open in.
// Any other error is taken for that too. If this returns an error, the file may still be attached.
func ownsCache(ctx context.Context, conn *sql.Conn) (bool, error) {
	path, err := file(ctx, conn)
	if err != nil {
		return false, err
	}
	_, err = conn.ExecContext(ctx, `ATTACH ? AS rowlock_cache`, location(path)+"?mode=rw&cache=shared")
	if err != nil {
		return false, ctx.Err()
	}
	_, err = conn.ExecContext(ctx, `DETACH rowlock_cache`)
	return true, err
}
