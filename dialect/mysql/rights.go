package mysql

import (
	"context"
	"database/sql"
)

// columns are a column of each table, for statements that are prepared and never run.
var columns = map[string]string{
	"rowlock": "note", "rowlock_floor": "floor", "rowlock_queue": "note", "rowlock_meta": "value",
	"rowlock_hold": "made_at", "rowlock_wait": "note", "rowlock_once": "result",
	"rowlock_member": "note", "rowlock_limit": "slots", "rowlock_forced": "reason", "rowlock_trace": "detail",
	"rowlock_latch": "state", "rowlock_party": "party",
}

// Lacks prepares a statement of each kind, because the server checks the rights when it prepares.
// The catalog does not show rights that come from a role. A table that is not there lacks all that
// the user has not: the server does not tell.
func (d *database) Lacks(ctx context.Context, conn *sql.Conn, table string) (
	rights []string, err error,
) {
	name, column := d.settings.Names.Table(table, quote), quote+columns[table]+quote
	statements := map[string]string{
		"SELECT": `SELECT ` + column + ` FROM ` + name,
		"INSERT": `INSERT INTO ` + name + ` (` + column + `) VALUES (?)`,
		"UPDATE": `UPDATE ` + name + ` SET ` + column + ` = ?`,
		"DELETE": `DELETE FROM ` + name,
	}
	for _, right := range d.settings.Needs(table) {
		st, err := conn.PrepareContext(ctx, statements[right])
		switch {
		case err == nil:
			_ = st.Close()
		case isNumber(err, 1142), isNumber(err, 1143):
			rights = append(rights, right)
		case ctx.Err() != nil:
			return nil, err
		}
	}
	return rights, nil
}
