package settings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// Migrations makes tables and removes them on a pool of seen whose sessions have some settings, in
// each way that package schema has. The tables must be those of clean, which were made without the
// settings. The error is Refused if the migration said that it cannot work here.
func Migrations(ctx context.Context, db *sql.DB, seen, clean *testdb.Env) error {
	return (&conformer{ctx: ctx, db: db, seen: seen, e: clean}).migrate()
}

func (f *conformer) migrate() (err error) {
	prefix := dialect.Prefix(fmt.Sprintf("%sm%d_", f.e.Dialect.Names().Prefix, serial.Add(1)))
	seen, clean := f.seen.New(prefix), f.e.New(prefix)
	defer func() { err = errors.Join(err, schema.Uninstall(f.ctx, f.e.DB, clean)) }()
	if err := schema.Migrate(f.ctx, f.db, seen); err != nil {
		return refused(err)
	}
	if err := f.sameTables(clean); err != nil {
		return err
	}
	before, err := f.token(clean)
	if err != nil {
		return fmt.Errorf("the tables that were made: %w", err)
	}
	if err := schema.Down(f.ctx, f.db, seen); err != nil {
		return fmt.Errorf("down: %w", err)
	}
	ran := 0
	err = schema.Alone(f.ctx, f.db, seen, func(context.Context) error { ran++; return nil })
	if err != nil || ran != 1 {
		return fmt.Errorf("alone, which ran %d times: %w", ran, refused(err))
	}
	if err := f.sameTables(clean); err != nil {
		return fmt.Errorf("made a second time: %w", err)
	}
	if after, err := f.token(clean); err != nil || after <= before {
		return fmt.Errorf("token %d after token %d of the tables before: %w", after, before, err)
	}
	if err := schema.Uninstall(f.ctx, f.db, seen); err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	for _, table := range tablesOf(clean) {
		if _, err := f.e.DB.ExecContext(f.ctx, "SELECT 1 FROM "+table); err == nil {
			return fmt.Errorf("uninstall has left %s", table)
		}
	}
	return nil
}

// token is one that a key of the tables gets, which no setting has a part in.
func (f *conformer) token(d *sqlstore.Dialect) (token rowlock.Token, err error) {
	c, err := rowlock.OpenContext(f.ctx, f.e.DB, d, config(rowlock.Update))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	l, err := c.TryLock(f.ctx, "key")
	if err != nil {
		return 0, err
	}
	return l.Token(), l.Unlock(f.ctx)
}

// shapes tell all that the catalog knows of a table, in one row, because a reader's session may have
// a limit on rows.
var shapes = map[string]string{
	"pgx": `SELECT concat_ws(chr(10), (SELECT concat_ws(' ', c.relkind, c.relpersistence, a.amname,
			array_to_string(c.reloptions, ',')) FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam WHERE c.oid = t),
		(SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, attstorage,
			attcollation, attidentity, attcompression, pg_get_expr(d.adbin, t)), chr(10) ORDER BY attnum)
			FROM pg_attribute LEFT JOIN pg_attrdef AS d ON adrelid = t AND adnum = attnum
			WHERE attrelid = t AND attnum > 0),
		(SELECT string_agg(pg_get_constraintdef(oid), chr(10) ORDER BY conname COLLATE "C") FROM pg_constraint WHERE conrelid = t),
		(SELECT string_agg(pg_get_indexdef(indexrelid), chr(10) ORDER BY indexrelid) FROM pg_index WHERE indrelid = t))
		FROM (SELECT '@table'::regclass::oid AS t) AS of`,
	"mysql": `SHOW CREATE TABLE @table`,
	"sqlite": `SELECT group_concat(coalesce(sql, ''), char(10)) FROM
		(SELECT sql FROM sqlite_schema WHERE tbl_name = replace(replace('@table', '"main".', ''), '"', '') ORDER BY name)`,
}

// sameTables compares the tables with those of the Env.
func (f *conformer) sameTables(d *sqlstore.Dialect) error {
	usual := tablesOf(f.e.Dialect)
	for i, table := range tablesOf(d) {
		got, err := f.shape(d, table)
		if err != nil {
			return err
		}
		want, err := f.shape(f.e.Dialect, usual[i])
		if err != nil {
			return err
		}
		if got != want || got == "" {
			return fmt.Errorf("%s is\n%s\nand without the setting\n%s", table, got, want)
		}
	}
	return nil
}

func (f *conformer) shape(d *sqlstore.Dialect, table string) (shape string, err error) {
	to := []any{&shape}
	if f.e.Driver == "mysql" {
		to = []any{new(string), &shape}
	}
	err = f.e.DB.QueryRowContext(f.ctx, strings.ReplaceAll(shapes[f.e.Driver], "@table", table)).Scan(to...)
	shape = strings.ReplaceAll(shape, d.Names().Prefix+"rowlock", "rowlock")
	return apart.ReplaceAllString(shape, ""), err
}

// apart is what tables may differ in: how many tickets one has given out, with which key MariaDB
// encrypts it, and the old format of times, in which they have the same range and fraction.
var apart = regexp.MustCompile(" AUTO_INCREMENT=\\d+| `?ENCRYPTION_KEY_ID`?='\\d+'| /\\* mariadb-5.3 \\*/")

var created = regexp.MustCompile(`(?m)^CREATE TABLE (?:IF NOT EXISTS )?(\S+) \(`)

// tablesOf are the names of all tables, as the migration writes them.
func tablesOf(d *sqlstore.Dialect) (names []string) {
	up, _, err := schema.SQL(d)
	if err != nil {
		panic(err) // the dialect has made tables
	}
	for _, m := range created.FindAllStringSubmatch(up, -1) {
		names = append(names, m[1])
	}
	return names
}
