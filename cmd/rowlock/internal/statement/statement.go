// Package statement reads the statements of a kind of database from files with sections, as the
// dialects have them.
package statement

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// All returns the statements of a kind in their order, with the names of the tables filled in. The
// error says that there is no file for the kind.
func All(files embed.FS, kind string, names sqlstore.Names) ([]sqlstore.Section, error) {
	text, err := files.ReadFile(kind + ".sql")
	if err != nil {
		return nil, err
	}
	quote := `"`
	if kind == "mysql" {
		quote = "`"
	}
	all := sqlstore.CutSections(string(text))
	for i := range all {
		all[i].SQL = names.Fill(all[i].SQL, quote)
	}
	return all, nil
}

// Labeled returns them by name, each with its name as a comment. The kind must have a file.
func Labeled(files embed.FS, kind string, names sqlstore.Names) map[string]string {
	all, err := All(files, kind, names)
	if err != nil {
		panic(err)
	}
	out := make(map[string]string, len(all))
	for _, s := range all {
		out[s.Name] = sqlstore.LabelSection(s.Name, s.SQL)
	}
	return out
}

// Rows returns what scan makes of each row of a query.
func Rows[T any](
	ctx context.Context, db *sql.DB, query string, args []any, scan func(*sql.Rows) (T, error),
) (all []T, err error) {
	found, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("rowlock: list: %w", err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		one, err := scan(found)
		if err != nil {
			return nil, fmt.Errorf("rowlock: list: %w", err)
		}
		all = append(all, one)
	}
	return all, found.Err()
}
