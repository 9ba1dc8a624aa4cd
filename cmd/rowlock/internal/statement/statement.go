// Package statement reads the statements of a kind of database from files with sections, as the
// dialects have them.
package statement

import (
	"embed"

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
