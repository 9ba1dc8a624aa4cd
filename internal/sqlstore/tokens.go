package sqlstore

import "strings"

// OnTable returns the SQL of a section of token.sql for a table of the user's own. The names are
// quoted: see Quote.
func (d *Dialect) OnTable(section, table, key, token string) string {
	names := strings.NewReplacer("@table", table, "@key", key, "@token", token)
	return names.Replace(d.Sections.Text(section))
}
