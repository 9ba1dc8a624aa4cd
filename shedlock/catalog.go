package shedlock

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// catalog is where a database describes its tables, and how they are changed.
type catalog struct {
	words        words
	numbered     bool // parameters are $1, not ?
	times, texts []string
	coarse       bool // a time without a fraction that is said has none

	time, create, alter, keep string
	columns                   string // name, type, whether it may be NULL, whether it is filled
	facts                     string // unique, stored, zone, character set
	split                     bool   // the parameters are the schema and the name
}

var catalogs = map[string]catalog{
	"postgres": {
		words: postgresWords, numbered: true,
		times: []string{"timestamp without time zone"}, texts: []string{"character varying", "text"},
		time: "TIMESTAMP",
		create: "CREATE TABLE %s (name VARCHAR(64) NOT NULL PRIMARY KEY, lock_until TIMESTAMP NOT NULL, " +
			"locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL)",
		alter: "while no process locks, ALTER TABLE %[1]s ALTER COLUMN %[2]s TYPE %[3]s, ALTER COLUMN %[2]s SET NOT NULL",
		keep:  "ALTER TABLE %s SET LOGGED",
		columns: `SELECT attname, format_type(atttypid, atttypmod), NOT attnotnull, atthasdef OR attidentity <> ''
			FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
		facts: `SELECT EXISTS (
				SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
				WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indnkeyatts = 1
					AND i.indpred IS NULL AND a.attname = 'name'),
			CASE WHEN relkind NOT IN ('r', 'p') THEN 'no table' WHEN relpersistence <> 'p' THEN 'UNLOGGED or temporary' ELSE '' END, '', getdatabaseencoding()
			FROM pg_class c WHERE oid = to_regclass($1)`,
	},
	"mysql": {
		words: mysqlWords,
		times: []string{"timestamp", "datetime"}, texts: []string{"varchar"},
		coarse: true, time: "TIMESTAMP(3)",
		create: "CREATE TABLE %s (name VARCHAR(64) NOT NULL PRIMARY KEY, lock_until TIMESTAMP(3) NOT NULL, " +
			"locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL)",
		alter: "while no process locks, ALTER TABLE %s MODIFY COLUMN %s %s NOT NULL",
		keep:  "ALTER TABLE %s ENGINE=InnoDB",
		columns: `SELECT column_name, column_type, is_nullable = 'YES',
				column_default IS NOT NULL OR extra LIKE '%auto_increment%' OR extra LIKE '%GENERATED%'
			FROM information_schema.columns WHERE table_schema = ? AND table_name = ?`,
		facts: `SELECT EXISTS (
				SELECT 1 FROM information_schema.statistics s WHERE s.table_schema = t.table_schema
					AND s.table_name = t.table_name AND non_unique = 0
				GROUP BY index_name HAVING count(*) = 1 AND max(column_name) = 'name' AND max(sub_part) IS NULL),
			CASE WHEN engine IS NULL THEN 'no table' WHEN engine <> 'InnoDB' THEN engine ELSE '' END,
			CASE WHEN @@session.time_zone = @@global.time_zone THEN '' ELSE @@session.time_zone END,
			(SELECT coalesce(max(character_set_name), '') FROM information_schema.columns c WHERE c.table_schema = t.table_schema
				AND c.table_name = t.table_name AND column_name = 'locked_by')
			FROM information_schema.tables t WHERE table_schema = ? AND table_name = ?`,
		split: true,
	},
}

// read returns what the database says of a table, by its quoted name: no columns if there is none.
func (c catalog) read(ctx context.Context, db *sql.DB, table string) (t found, err error) {
	args := []any{table}
	if c.split {
		schema, name, _ := strings.Cut(strings.Trim(table, "`"), "`.`")
		args = []any{schema, name}
	}
	t.columns = make(map[string]column)
	err = c.readColumns(ctx, db, t.columns, args)
	if err == nil && len(t.columns) > 0 {
		err = db.QueryRowContext(ctx, c.facts, args...).Scan(&t.unique, &t.fleeing, &t.zone, &t.charset)
	}
	if err != nil {
		err = fmt.Errorf("rowlock: shedlock: table %s: %w", table, err)
	}
	return t, err
}

func (c catalog) readColumns(ctx context.Context, db *sql.DB, columns map[string]column, args []any) error {
	rows, err := db.QueryContext(ctx, c.columns, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind string
		var nullable, filled bool
		if err := rows.Scan(&name, &kind, &nullable, &filled); err != nil {
			return err
		}
		columns[strings.ToLower(name)] = newColumn(kind, nullable, filled)
	}
	return rows.Err()
}
