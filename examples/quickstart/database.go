package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
)

// database is a pool, and how rowlock is to speak to it.
type database struct {
	*sqlx.DB
	dialect dialect.Dialect
	prefix  string // of every table made here
}

// open chooses driver and dialect by the form of source.
func open(source, prefix string) (*database, error) {
	scheme, rest, isURL := strings.Cut(source, "://")
	driver, dsn, d := "sqlite", sqliteDSN(source), dialect.Dialect(sqlite.New(dialect.Prefix(prefix)))
	var err error
	switch {
	case scheme == "postgres", scheme == "postgresql":
		driver, dsn, d = "pgx", source, postgres.New(dialect.Prefix(prefix))
	case scheme == "mysql":
		driver, d = "mysql", mysql.New(dialect.Prefix(prefix)) // speaks to MariaDB too
		dsn, err = mysqlDSN(rest)
	case isURL:
		err = fmt.Errorf("-db %s://…: use postgres://, mysql:// or the name of a SQLite file", scheme)
	}
	if err != nil {
		return nil, err
	}
	pool, err := sqlx.Open(driver, dsn)
	return &database{DB: pool, dialect: d, prefix: prefix}, err
}

// sqliteDSN sets what several processes on one file need: WAL lets readers and the writer work side by side, busy_timeout
// makes a writer wait for its turn, and immediate transactions take the turn when they begin, not halfway through.
func sqliteDSN(file string) string {
	path, err := filepath.Abs(file)
	if err != nil {
		path = file
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	settings := url.Values{"_pragma": {"journal_mode(WAL)", "busy_timeout(5000)"}, "_txlock": {"immediate"}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: settings.Encode()}).String()
}

// mysqlDSN makes the driver's own form of user:password@host:port/database. What has that form already is left alone.
func mysqlDSN(rest string) (string, error) {
	if cfg, err := mysqldriver.ParseDSN(rest); err == nil {
		return cfg.FormatDSN(), nil
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil {
		return "", errors.New("-db mysql://…: not of the form mysql://user:password@host:port/database") // err would show the password
	}
	cfg := mysqldriver.NewConfig()
	cfg.User, cfg.DBName = u.User.Username(), strings.TrimPrefix(u.Path, "/")
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr = "tcp", u.Host
	if u.Port() == "" {
		cfg.Addr += ":3306"
	}
	dsn := cfg.FormatDSN()
	if u.RawQuery != "" {
		dsn += "?" + u.RawQuery
	}
	return dsn, nil
}

// sql fills in the table's name and the database's own placeholders.
func (db *database) sql(query string) string {
	return db.Rebind(strings.ReplaceAll(query, "{numbers}", db.prefix+"numbers"))
}

// read returns one of our numbers.
func (db *database) read(ctx context.Context, name string) (value int64, err error) {
	err = db.GetContext(ctx, &value, db.sql(`SELECT value FROM {numbers} WHERE name = ?`), name)
	return value, err
}

// write changes it, whatever has happened since it was read.
func (db *database) write(ctx context.Context, name string, value int64) error {
	_, err := db.ExecContext(ctx, db.sql(`UPDATE {numbers} SET value = ? WHERE name = ?`), value, name)
	return err
}

// writeFenced changes it only if the lock is still held. Check and write are one transaction, and nobody can take the lock
// before it ends: nothing can come between the two, however long the process is stopped there.
func (db *database) writeFenced(ctx context.Context, l *rowlock.Lock, name string, value int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit

	if err := l.Fence(ctx, tx); err != nil { // always first
		return err
	}
	if _, err := tx.ExecContext(ctx, db.sql(`UPDATE {numbers} SET value = ? WHERE name = ?`), value, name); err != nil {
		return err
	}
	return tx.Commit()
}
