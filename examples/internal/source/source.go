// Package source opens the database that an example was told to use: its -db, and how rowlock is to
// speak to it.
package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
)

// Forms is what a -db flag takes.
const Forms = "postgres://…, mysql://… or a SQLite `file`"

// Usage is the help text of a -db flag that need not be given.
const Usage = Forms + "; without it a SQLite file in a temporary folder"

// DB is a pool, and how rowlock is to speak to it.
type DB struct {
	*sqlx.DB
	Dialect dialect.Dialect
	// Source is what was opened, for other processes to open too.
	Source string
	folder string // made by us, with the database in it; or none
	sent   *atomic.Int64
}

// Open chooses driver and dialect by the form of source, and sees that the database answers. "" is
// a new SQLite file, which Close removes.
func Open(ctx context.Context, source string, opts ...dialect.Option) (*DB, error) {
	return open(ctx, &DB{Source: source}, opts)
}

func open(ctx context.Context, db *DB, opts []dialect.Option) (_ *DB, err error) {
	if db.Source == "" {
		if db.folder, err = os.MkdirTemp("", "rowlock-example-"); err != nil {
			return nil, err
		}
		db.Source = filepath.Join(db.folder, "example.db")
	}
	if err = db.open(opts); err == nil {
		err = db.connect(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *DB) open(opts []dialect.Option) (err error) {
	scheme, rest, isURL := strings.Cut(db.Source, "://")
	driver, dsn := "sqlite", sqliteDSN(db.Source)
	db.Dialect = sqlite.New(opts...)
	switch {
	case scheme == "postgres", scheme == "postgresql":
		driver, dsn, db.Dialect = "pgx", db.Source, postgres.New(opts...)
	case scheme == "mysql":
		driver, db.Dialect = "mysql", mysql.New(opts...) // speaks to MariaDB too
		dsn, err = mysqlDSN(rest)
	case isURL:
		err = fmt.Errorf("-db %s://…: use postgres://, mysql:// or the name of a SQLite file", scheme)
	}
	if err == nil {
		db.DB, err = db.pool(driver, dsn)
	}
	return err
}

func (db *DB) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var err error
	if db.Dialect.Name() == "sqlite" {
		err = makeWAL(db.Source)
	}
	if err == nil {
		err = db.PingContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("connect to %s: %w", db.Shown(), err)
	}
	return nil
}

// makeWAL changes a new file to WAL. Of processes that do that at once, one may be told that the
// file is busy, whatever its busy_timeout: sqlite.Open tries again.
func makeWAL(file string) error {
	db, err := sqlite.Open(file)
	if err != nil {
		return err
	}
	return db.Close()
}

// Close closes the pool and removes what Open made.
func (db *DB) Close() (err error) {
	if db.DB != nil {
		err = db.DB.Close()
	}
	if db.folder != "" {
		err = errors.Join(err, os.RemoveAll(db.folder))
	}
	return err
}

// Shown is the source without a password.
func (db *DB) Shown() string {
	scheme, rest, isURL := strings.Cut(db.Source, "://")
	if at := strings.LastIndex(rest, "@"); isURL && at >= 0 {
		rest = "…" + rest[at:]
	}
	if isURL {
		rest, _, _ = strings.Cut(rest, "?") // it may be among the parameters, too
		return scheme + "://" + rest
	}
	return db.Source
}

// Product is the database's product and version.
func (db *DB) Product(ctx context.Context) string {
	query := map[string]string{"sqlite": `SELECT sqlite_version()`}[db.Dialect.Name()]
	if query == "" {
		query = `SELECT version()`
	}
	var version string
	if err := db.GetContext(ctx, &version, query); err != nil {
		return db.Dialect.Name()
	}
	switch {
	case db.Dialect.Name() == "sqlite":
		return "SQLite " + version
	case strings.HasPrefix(version, "PostgreSQL"):
		version, _, _ = strings.Cut(version, " (")
		version, _, _ = strings.Cut(version, " on ")
		return version
	case strings.Contains(version, "MariaDB"):
		return "MariaDB " + strings.SplitN(version, "-", 2)[0]
	}
	return "MySQL " + version
}
