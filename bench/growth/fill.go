package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// series is that of the keys that fill has made: race.Key(series, 0, n) is the nth.
const series = 'k'

// chunk is how many rows one statement makes at most.
const chunk = 100_000

// fillers are the statements that make the rows from ? to before ?, as an Unlock leaves them. The
// server makes them by itself: to send ten million rows would take it longer.
var fillers = map[string]string{
	"sqlite": `WITH RECURSIVE numbers (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM numbers WHERE n < ? - 1)
		INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at)
		SELECT CAST(printf('bench/k/00/%010d', n) AS BLOB), 1, {now}, {now} FROM numbers`,
	"pgx": `INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at)
		SELECT convert_to('bench/k/00/' || lpad(n::text, 10, '0'), 'SQL_ASCII'), 1, {now}, {now}
		FROM generate_series(?::bigint, ?::bigint - 1) AS n`,
	"mysql": `INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at)
		WITH digits (d) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
			UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9),
		numbers (n) AS (SELECT ? + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d
			FROM digits AS a, digits AS b, digits AS c, digits AS e, digits AS f)
		SELECT CONCAT('bench/k/00/', LPAD(n, 10, '0')), 1, {now}, {now} FROM numbers WHERE n < ? ORDER BY n`,
}

// fill makes so many free rows, in the order of their keys.
func fill(ctx context.Context, d *rig.Database, rows int) error {
	insert := d.SQL(fillers[d.Driver])
	for from := 0; from < rows; from += chunk {
		if _, err := d.Pool.ExecContext(ctx, insert, from, min(rows, from+chunk)); err != nil {
			return fmt.Errorf("make rows from %d: %w", from, err)
		}
	}
	return tidy(ctx, d)
}

// tidy has PostgreSQL do at once what it would begin to do during the turns.
func tidy(ctx context.Context, d *rig.Database) error {
	if d.Driver != "pgx" {
		return nil
	}
	for _, text := range []string{"VACUUM (ANALYZE) " + d.Table(), "CHECKPOINT"} {
		if _, err := d.Pool.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// sizes are the queries for the bytes of the table and of its index. InnoDB's and SQLite's tables
// are their index.
var sizes = map[string]string{
	"sqlite":   `SELECT sum(pgsize), 0 FROM dbstat WHERE name = ?`,
	"postgres": `SELECT pg_table_size(quote_ident($1)::regclass), pg_indexes_size(quote_ident($1)::regclass)`,
	"mariadb":  `SELECT FILE_SIZE, 0 FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME = CONCAT(DATABASE(), '/', ?)`,
	"mysql":    `SELECT FILE_SIZE, 0 FROM information_schema.INNODB_TABLESPACES WHERE NAME = CONCAT(DATABASE(), '/', ?)`,
}

// sizeOf is how many bytes of disk the table and its index have.
func sizeOf(ctx context.Context, d *rig.Database) (table, index int64, err error) {
	name := strings.Trim(d.Table(), "`\"")
	err = d.Pool.QueryRowContext(ctx, sizes[d.Name], name).Scan(&table, &index)
	return table, index, err
}
