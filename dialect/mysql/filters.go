package mysql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
)

// filtered refuses a server whose binary log leaves out the database of rowlock's tables: a replica
// would acknowledge each commit and never get rowlock's rows. The session's own database does not
// matter, because under READ COMMITTED the log has rows. The filters are no variables, and not
// every user may read them. Those of a replica are not known here.
func (d *database) filtered(ctx context.Context, conn *sql.Conn) (warnings []string, err error) {
	var database string
	err = conn.QueryRowContext(ctx, `SELECT IF(@@lower_case_table_names = 1, LOWER(d.name), d.name)
		FROM (SELECT ? AS name) AS d`,
		d.settings.Names.Schema).Scan(&database)
	if err != nil {
		return nil, err
	}
	do, ignore, err := filters(ctx, conn)
	switch {
	case isNumber(err, 1227):
		return []string{"the user may not see whether binlog_do_db or binlog_ignore_db leave rowlock's " +
			"tables out of the binary log; GRANT REPLICATION CLIENT ON *.* TO the user (MariaDB: BINLOG " +
			"MONITOR)"}, nil
	case err != nil:
		return nil, err
	}
	return nil, logged(database, do, ignore)
}

// logged compares a database with the server's filters, which have a database's name exactly.
func logged(database string, do, ignore []string) error {
	switch {
	case len(do) > 0 && !slices.Contains(do, database):
		return notSynchronous("binlog_do_db leaves the database "+database+" out of the binary log, so "+
			"that no replica gets its commits", "start the server with binlog_do_db="+database+" too")
	case slices.Contains(ignore, database):
		return notSynchronous("binlog_ignore_db has the database "+database+", so that no replica gets "+
			"its commits", "start the server without it")
	}
	return nil
}

// filters reads which databases are in the binary log: only those of do, if there are any, and none
// of ignore. A server names the statement by its version.
func filters(ctx context.Context, conn *sql.Conn) (do, ignore []string, err error) {
	rows, err := conn.QueryContext(ctx, `SHOW BINARY LOG STATUS`)
	if isNumber(err, 1064) {
		rows, err = conn.QueryContext(ctx, `SHOW MASTER STATUS`)
	}
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() { // without a binary log there is no row
		return nil, nil, errors.Join(err, rows.Err())
	}
	values, dest := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	if err := rows.Scan(dest...); err != nil {
		return nil, nil, err
	}
	return filter(columns, values, "Binlog_Do_DB"), filter(columns, values, "Binlog_Ignore_DB"), rows.Close()
}

func filter(columns []string, values []sql.NullString, name string) []string {
	i := slices.Index(columns, name)
	if i < 0 || values[i].String == "" {
		return nil
	}
	return strings.Split(values[i].String, ",")
}
