package main

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
	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

// kind is one database product.
type kind struct {
	name, driver string
	dialect      func(...dialect.Option) dialect.Dialect
	renewal      string // the section that every renewal runs once
	source       string // empty for SQLite, whose file is made
}

var kinds = []kind{
	{"sqlite", "sqlite", func(o ...dialect.Option) dialect.Dialect { return sqlite.New(o...) }, "renew", ""},
	{"postgres", "pgx", func(o ...dialect.Option) dialect.Dialect { return postgres.New(o...) }, "renew", ""},
	{"mariadb", "mysql", func(o ...dialect.Option) dialect.Dialect { return mysql.New(o...) }, "renew", ""},
	{"mysql", "mysql", func(o ...dialect.Option) dialect.Dialect { return mysql.New(o...) }, "renew", ""},
}

// present returns the databases that were asked for. One that was named and is not there is an error.
func present(names string) ([]kind, error) {
	var found []kind
	asked := strings.Split(names, ",")
	for _, k := range kinds {
		named := slices.Contains(asked, k.name)
		if !named && names != "all" {
			continue
		}
		asked = slices.DeleteFunc(asked, func(s string) bool { return s == k.name })
		variable := "ROWLOCK_TEST_" + strings.ToUpper(k.name)
		k.source = os.Getenv(variable)
		switch {
		case k.name == "sqlite" || k.source != "":
			found = append(found, k)
		case named:
			return nil, fmt.Errorf("-db %s: %s is not set", k.name, variable)
		default:
			fmt.Fprintf(os.Stderr, "floor: no %s: set %s\n", k.name, variable)
		}
	}
	if len(asked) > 0 && names != "all" {
		return nil, fmt.Errorf("-db %s: no such database", strings.Join(asked, ","))
	}
	return found, nil
}

// database is one that has rowlock's tables, made for this run.
type database struct {
	kind
	pool    *sql.DB
	dialect dialect.Dialect
	folder  string
}

func open(ctx context.Context, k kind) (*database, error) {
	d := &database{kind: k, dialect: k.dialect(dialect.Prefix(fmt.Sprintf("floor%d_", os.Getpid())))}
	if k.name == "sqlite" {
		if err := d.makeFile(); err != nil {
			return nil, err
		}
	}
	var err error
	if d.pool, err = sql.Open(k.driver, d.source); err != nil {
		return nil, err
	}
	if err := schema.Migrate(ctx, d.pool, d.dialect); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) makeFile() (err error) {
	if d.folder, err = os.MkdirTemp("", "rowlock-floor-"); err != nil {
		return err
	}
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "busy_timeout(5000)"}, "_txlock": {"immediate"}}
	d.source = "file:" + filepath.Join(d.folder, "floor.db") + "?" + pragmas.Encode()
	return nil
}

func (d *database) close() error {
	err := schema.Down(context.Background(), d.pool, d.dialect)
	err = errors.Join(err, d.pool.Close())
	if d.folder != "" {
		err = errors.Join(err, os.RemoveAll(d.folder))
	}
	return err
}

// lanes is how many connections rowlock will use of those it is allowed.
func (d *database) lanes(allowed int) int {
	if most := d.dialect.Lanes(); most > 0 {
		return min(allowed, most)
	}
	return allowed
}

// table is the quoted name of the table of locks.
func (d *database) table() string {
	quote := `"`
	if d.driver == "mysql" {
		quote = "`"
	}
	return d.dialect.Names().Table("rowlock", quote)
}
