// Package dialect names the kind of database that rowlock speaks to, and where its tables stand.
//
// The packages below it, dialect/postgres, dialect/mysql and dialect/sqlite, make a [Dialect]. Only
// they import a database's driver.
package dialect

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/internal/adapter"
)

//go:generate go run ./internal/pages

// Dialect speaks to one kind of database. postgres.New, mysql.New and sqlite.New return one; no
// other package can.
type Dialect interface {
	// Name is "postgres", "mysql" (which speaks to MariaDB too) or "sqlite".
	Name() string
	adapter.Opener
}

// Option changes what a dialect does, above all where it looks for its tables.
type Option func(*adapter.Place)

// Prefix puts p before the name of every table. It must match [A-Za-z_][A-Za-z0-9_]{0,39}.
func Prefix(p string) Option { return func(s *adapter.Place) { s.Prefix = p } }

// Schema names the Postgres schema or MySQL database of the tables. It must match
// [A-Za-z_][A-Za-z0-9_]{0,39}.
//
// Without it, Open and Migrate find the schema once, and every statement names it. On PostgreSQL
// it is the first of the search_path that has the tables, or else the first that exists; on MySQL
// and MariaDB it is the database of the DSN. The search_path is that with which a session begins:
// of the DSN, the role or the database. What an application sends on a connection of the pool, SET
// search_path or USE, does not count, and harms no lock. If a hook sends it on every new
// connection, name the schema here; likewise behind PgBouncer, whose sessions do not have the
// search_path of the DSN.
func Schema(name string) Option { return func(s *adapter.Place) { s.Schema = name } }

// Pool has connections to borrow: *sql.DB and *sqlx.DB do.
type Pool interface {
	Conn(ctx context.Context) (*sql.Conn, error)
}

// DB is a Pool that says how large it is: *sql.DB and *sqlx.DB do.
type DB interface {
	Pool
	Stats() sql.DBStats
}

// Strategy is what an acquire tries first. Both work on the same rows and give the same guarantees,
// so that clients of either kind can share a table.
type Strategy = adapter.Strategy

const (
	// Update tries the row first and creates it if there is none: for keys that are locked
	// again and again.
	Update = adapter.Update
	// Insert creates the row first and looks at it if there is one: for keys that are used
	// once, as an order's.
	Insert = adapter.Insert
)
