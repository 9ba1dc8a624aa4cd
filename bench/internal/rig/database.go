// Package rig is what the programs of this module have in common: the databases they find, a connection by hand to compare with,
// and how a run is followed and reported.
package rig

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/schema"
)

// Kind is one database product.
type Kind struct {
	Name, Driver string
	Source       string // empty for SQLite, whose file is made

	dialect func(...dialect.Option) dialect.Dialect
}

var kinds = []Kind{
	{"sqlite", "sqlite", "", sqlite.New},
	{"postgres", "pgx", "", postgres.New},
	{"mariadb", "mysql", "", mysql.New},
	{"mysql", "mysql", "", mysql.New},
}

// Names says what may be named on a command line.
const Names = "databases, with commas between: sqlite, postgres, mariadb, mysql; all are those there are"

// Present returns the databases that were asked for. One that was named and is not there is an error.
func Present(names string) ([]Kind, error) {
	var found []Kind
	asked := strings.Split(names, ",")
	for _, k := range kinds {
		named := slices.Contains(asked, k.Name)
		if !named && names != "all" {
			continue
		}
		asked = slices.DeleteFunc(asked, func(s string) bool { return s == k.Name })
		variable := "ROWLOCK_TEST_" + strings.ToUpper(k.Name)
		k.Source = os.Getenv(variable)
		switch {
		case k.Name == "sqlite" || k.Source != "":
			found = append(found, k)
		case named:
			return nil, fmt.Errorf("-db %s: %s is not set", k.Name, variable)
		default:
			fmt.Fprintf(os.Stderr, "no %s: set %s\n", k.Name, variable)
		}
	}
	if len(asked) > 0 && names != "all" {
		return nil, fmt.Errorf("-db %s: no such database", strings.Join(asked, ","))
	}
	return found, nil
}

// Database is one that has rowlock's tables, made for this run.
type Database struct {
	Kind
	Pool    *sql.DB
	Dialect *sqlstore.Dialect

	Prefix string // of the tables' names
	Wire   *Wire  // of Pool's connections; nil on SQLite, which has none

	folder string
	guest  bool
}

// Open makes the tables.
func Open(ctx context.Context, k Kind) (*Database, error) {
	return OpenBeside(ctx, k, "")
}

// OpenBeside makes tables whose names no other name of this run has, so that several can be there at
// once.
func OpenBeside(ctx context.Context, k Kind, name string) (*Database, error) {
	prefix := fmt.Sprintf("bench%d_%s", os.Getpid(), name)
	d := &Database{Kind: k, Dialect: sqlstore.Of(k.dialect(dialect.Prefix(prefix))), Prefix: prefix}
	if k.Name == "sqlite" {
		if err := d.makeFile(); err != nil {
			return nil, err
		}
	}
	if err := d.connect(); err != nil {
		return nil, err
	}
	if err := schema.Migrate(ctx, d.Pool, d.Dialect); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Join opens a database whose tables another process has made.
func Join(name, source, prefix string) (*Database, error) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s: no such database", name)
	}
	k := kinds[i]
	k.Source = source
	d := &Database{Kind: k, Dialect: sqlstore.Of(k.dialect(dialect.Prefix(prefix))), Prefix: prefix, guest: true}
	return d, d.connect()
}

func (d *Database) makeFile() (err error) {
	if d.folder, err = os.MkdirTemp("", "rowlock-bench-"); err != nil {
		return err
	}
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "busy_timeout(5000)"}, "_txlock": {"immediate"}}
	d.Source = "file:" + filepath.Join(d.folder, "bench.db") + "?" + pragmas.Encode()
	return nil
}

// Close drops the tables, unless another process has made them.
func (d *Database) Close() error {
	if d.guest {
		return d.Pool.Close()
	}
	err := schema.Uninstall(context.Background(), d.Pool, d.Dialect)
	err = errors.Join(err, d.Pool.Close())
	if d.folder != "" {
		err = errors.Join(err, os.RemoveAll(d.folder))
	}
	return err
}

// Connections is how many connections rowlock will use of those it is allowed.
func (d *Database) Connections(allowed int) int {
	if most := d.Dialect.Connections(); most > 0 {
		return min(allowed, most)
	}
	return allowed
}

// Table is the quoted name of the table of locks.
func (d *Database) Table() string { return d.table("rowlock") }

func (d *Database) table(name string) string {
	return d.Dialect.Names().Table(name, d.quote())
}

func (d *Database) quote() string {
	if d.Driver == "mysql" {
		return "`"
	}
	return `"`
}

// clocks are each database's now, and what ? µs to be added to it are.
var clocks = map[string][2]string{
	"sqlite": {"CAST(unixepoch('subsec') * 1000 AS INTEGER)", "? / 1000"},
	"pgx":    {"clock_timestamp()", "?::bigint * interval '1 microsecond'"},
	"mysql":  {"UTC_TIMESTAMP(6)", "INTERVAL ? MICROSECOND"},
}

// SQL fills in a statement that is written for every database: ? is a parameter, {rowlock} and {rowlock_hold} are tables, {key} is that
// column, {now} the clock, {micros} a parameter's microseconds.
func (d *Database) SQL(text string) string {
	clock := clocks[d.Driver]
	text = strings.NewReplacer("{rowlock}", d.table("rowlock"), "{rowlock_hold}", d.table("rowlock_hold"), "{key}", d.quote()+"key"+d.quote(),
		"{now}", clock[0], "{micros}", clock[1]).Replace(text)
	if d.Driver == "pgx" {
		text = sqlx.Rebind(sqlx.DOLLAR, text)
	}
	return text
}
