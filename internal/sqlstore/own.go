package sqlstore

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Statements on the user's own tables are built from names, which cannot be bound as parameters.
// Postgres cuts a longer name off without an error.
var ownName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// Quote returns the name of one of the user's own tables or columns ("name", or "schema.name") as
// the database writes it. It refuses what is not a plain identifier with lease.ErrConfig. A quoted
// name is compared exactly: in Postgres one that was created without quotes is in lower case.
func (d *Dialect) Quote(name string) (string, error) {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if len(parts) > 2 || !ownName.MatchString(p) {
			return "", fmt.Errorf("%w: the name %q: use a letter or _, then up to 62 letters, digits or _; "+
				"before it may stand a schema and a dot", lease.ErrConfig, name)
		}
		parts[i] = d.room.Quote + p + d.room.Quote
	}
	return strings.Join(parts, "."), nil
}

// OwnIn returns the quoted name of one of the user's own tables, for statements that rowlock sends
// on connections of the pool. A name without a schema leads to the table that a new connection
// finds, whatever an application has sent on this one since. See Located.
func (d *Dialect) OwnIn(ctx context.Context, pool adapter.Pool, name string) (string, error) {
	quoted, err := d.Quote(name)
	if err != nil || strings.Contains(name, ".") {
		return quoted, err
	}
	schema, err := d.find(ctx, pool, name)
	if err == nil && d.OneWriter {
		schema, err = ownFile(ctx, pool, name)
	}
	if err != nil {
		return "", fmt.Errorf("%s has no schema in its name, as \"app.%s\" has: %w", name, name, err)
	}
	if _, err = d.in(schema); err != nil {
		return "", err
	}
	return Names{Schema: schema}.Table(name, d.room.Quote), nil
}

// ownFile returns "main" if the file of the DSN has the table. Otherwise it returns nothing,
// because the table may be in a file that the application attaches to each connection.
func ownFile(ctx context.Context, pool adapter.Pool, name string) (string, error) {
	pinned, err := pool.Conn(ctx)
	if err != nil {
		return "", conn.NotSent{Err: err}
	}
	defer pinned.Close()
	var n int
	err = pinned.QueryRowContext(ctx, `SELECT count(*) FROM main.sqlite_schema
		WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE`, name).Scan(&n)
	if err != nil || n == 0 {
		return "", err
	}
	return "main", nil
}

// In returns a SELECT of column for n values of it, with a ? for each, in the column's order. The
// names are quoted.
func In(table, column string, n int) string {
	values := strings.TrimSuffix(strings.Repeat("?, ", n), ", ")
	return fmt.Sprintf(`SELECT %s FROM %s WHERE %s IN (%s) ORDER BY %s`, column, table, column,
		values, column)
}
