package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// rowSecurity asks the server for which tables row-level security holds for this user. It does not
// for a table's owner, unless it is forced, and for roles with BYPASSRLS.
func (d *database) rowSecurity(ctx context.Context, conn *sql.Conn, tables []string) (string, error) {
	asks := make([]string, len(tables))
	for i, table := range tables {
		name := d.settings.Names.Table(table, quote)
		asks[i] = fmt.Sprintf(`SELECT '%s' WHERE row_security_active(to_regclass('%s'))`, name, name)
	}
	rows, err := conn.QueryContext(ctx, strings.Join(asks, " UNION ALL "))
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var active, cures []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", err
		}
		active = append(active, name)
		cures = append(cures, "ALTER TABLE "+name+" DISABLE ROW LEVEL SECURITY")
	}
	if err := rows.Err(); err != nil || active == nil {
		return "", err
	}
	return fmt.Sprintf("row-level security is on for %s, and may hide rows from this user: connect as the "+
		"tables' owner or as a role with BYPASSRLS, give the user a policy FOR ALL USING (true), or %s",
		strings.Join(active, ", "), strings.Join(cures, "; ")), nil
}
