package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Locate returns the database of the DSN. The server does not know what the DSN says, but it counts
// the changes since: without one, the session is still in the database that it began in.
func (d *database) Locate(ctx context.Context, conn *sql.Conn, _ string) (string, error) {
	var name string
	var changes int64
	err := conn.QueryRowContext(ctx, `SHOW SESSION STATUS LIKE 'Com_change_db'`).Scan(&name, &changes)
	if err == nil && changes > 0 {
		err = sqlstore.ErrStrayed
	}
	if err != nil {
		return "", err
	}
	var database sql.NullString
	if err := conn.QueryRowContext(ctx, `SELECT DATABASE()`).Scan(&database); err != nil {
		return "", err
	}
	if !database.Valid {
		return "", fmt.Errorf("%w: the DSN names no database that exists, so that nothing says where the "+
			"tables are: name it there, or with dialect.Schema", lease.ErrNoSchema)
	}
	return database.String, nil
}

// unshadow drops temporary tables that an application has left in the session under the names of
// ours: in its own session such a table stands for ours even if a statement names the database. The
// server asks for no right to do so.
func (d *database) unshadow(ctx context.Context, conn *sql.Conn) error {
	names := d.settings.Names
	if names.Schema == "" {
		return nil
	}
	tables := slices.Sorted(maps.Keys(columns))
	for i, table := range tables {
		tables[i] = names.Table(table, quote)
	}
	drop := `DROP TEMPORARY TABLE IF EXISTS ` + strings.Join(tables, ", ")
	_, err := conn.ExecContext(ctx, drop)
	if isNumber(err, 1792) { // the session's transactions only read, as no pinned connection's do
		if _, err = conn.ExecContext(ctx, `SET SESSION TRANSACTION READ WRITE`); err == nil {
			_, err = conn.ExecContext(ctx, drop)
		}
	}
	return err
}

// enter leads a session of ours to the database of our tables. Their names need none, but the
// server refuses an UPDATE of a table that is joined with a derived one while a session has no
// database (1046): the DSN may name none, and that of a tenant may have been dropped.
func (d *database) enter(ctx context.Context, conn *sql.Conn) error {
	names := d.settings.Names
	if names.Schema == "" {
		return nil
	}
	if _, err := conn.ExecContext(ctx, "USE "+quote+names.Schema+quote); err != nil {
		return err
	}
	return d.unshadow(ctx, conn)
}
