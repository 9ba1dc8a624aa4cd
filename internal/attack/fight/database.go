//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// Database is where an attack takes place.
type Database struct {
	Name   string // sqlite, postgres, mariadb, mysql
	DSN    string
	Prefix string
	// Pooled says that PgBouncer, in transaction mode, is between.
	Pooled bool `json:",omitempty"`
	// Tenant is another schema or database with tables of the same names, if there is one, and
	// Placement what the names of the data begin with then.
	Tenant, Placement string `json:",omitempty"`
	// Protected says that the data refuse writers without a fence.
	Protected bool `json:",omitempty"`
}

// find returns the server's, or a new file in folder.
func find(name, folder string) (Database, error) {
	d := Database{Name: name, Prefix: fmt.Sprintf("a%d_", os.Getpid())}
	switch name {
	case "sqlite":
		path := (&url.URL{Path: filepath.Join(folder, "attack.db")}).EscapedPath()
		d.DSN = "file:" + path + "?" + url.Values{"_pragma": {"journal_mode(WAL)", "busy_timeout(5000)"}, "_txlock": {"immediate"}}.Encode()
	case "postgres", "mariadb", "mysql":
		variable := "ROWLOCK_TEST_" + strings.ToUpper(name)
		if d.DSN = os.Getenv(variable); d.DSN == "" {
			return d, fmt.Errorf("%s is not set; run scripts/with-servers %s -- …", variable, name)
		}
	case "pgbouncer":
		d.Name, d.Pooled = "postgres", true
		if d.DSN = os.Getenv("ROWLOCK_TEST_PGBOUNCER"); d.DSN == "" {
			return d, errors.New("ROWLOCK_TEST_PGBOUNCER is not set; run scripts/with-servers postgres pgbouncer -- …")
		}
	default:
		return d, fmt.Errorf("-db %q: want sqlite, postgres, pgbouncer, mariadb or mysql", name)
	}
	return d, nil
}

func (d Database) Driver() string {
	switch d.Name {
	case "postgres":
		return "pgx"
	case "sqlite":
		return "sqlite"
	}
	return "mysql"
}

func (d Database) Dialect() dialect.Dialect {
	switch d.Name {
	case "postgres":
		if d.Pooled {
			return postgres.New(dialect.Prefix(d.Prefix), postgres.Pooled())
		}
		return postgres.New(dialect.Prefix(d.Prefix))
	case "sqlite":
		return sqlite.New(dialect.Prefix(d.Prefix))
	}
	return mysql.New(dialect.Prefix(d.Prefix))
}

// The driver logs each connection that is cut.
func init() { _ = driver.SetLogger(log.New(io.Discard, "", 0)) }

// Open opens a pool of at most n connections.
func (d Database) Open(n int) (*sql.DB, error) {
	db, err := d.connect()
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n) // else a busy pool dials for each transaction
	return db, nil
}

func (d Database) connect() (*sql.DB, error) {
	if d.Name != "postgres" {
		return sql.Open(d.Driver(), d.DSN)
	}
	cfg, err := pgx.ParseConfig(d.DSN)
	if err != nil {
		return nil, err
	}
	traced(cfg)
	return stdlib.OpenDB(*cfg), nil
}

// SQL writes ? as the driver wants it, and the prefix for {}.
func (d Database) SQL(query string) string {
	query = d.named(query)
	if d.Name != "postgres" {
		return query
	}
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
	}
	return query
}

// Create makes rowlock's tables and the data that locks protect. The journal has no unique index
// on the value: the database must not prevent what the attack is looking for.
func (d Database) Create(ctx context.Context, db *sql.DB) error {
	if err := schema.Migrate(ctx, db, d.Dialect()); err != nil {
		return err
	}
	for _, query := range []string{
		`CREATE TABLE {}counter (k VARCHAR(64) PRIMARY KEY, n BIGINT NOT NULL)`,
		`CREATE TABLE {}journal (op VARCHAR(64) PRIMARY KEY, k VARCHAR(64) NOT NULL, v BIGINT NOT NULL, token BIGINT NOT NULL,
		 process VARCHAR(32) NOT NULL, holder BIGINT NOT NULL)`,
		`CREATE TABLE {}effect (op VARCHAR(64) PRIMARY KEY, k VARCHAR(64) NOT NULL)`,
		`CREATE TABLE {}pulse (process VARCHAR(32) PRIMARY KEY, n BIGINT NOT NULL)`,
	} {
		if _, err := db.ExecContext(ctx, d.SQL(query)); err != nil {
			return err
		}
	}
	return d.refusing(ctx, db)
}

// pulse writes to a row that is its process's alone. A failover may have lost the row.
func (d Database) pulse() string {
	again := `ON CONFLICT (process) DO UPDATE SET n = {}pulse.n + 1`
	if d.Driver() == "mysql" {
		again = `ON DUPLICATE KEY UPDATE n = n + 1`
	}
	return d.SQL(`INSERT INTO {}pulse VALUES (?, 0) ` + again)
}

// Counters makes a row for each key.
func (d Database) Counters(ctx context.Context, db *sql.DB, keys []string) error {
	for _, key := range keys {
		if _, err := db.ExecContext(ctx, d.SQL(`INSERT INTO {}counter VALUES (?, 0)`), key); err != nil {
			return err
		}
	}
	return nil
}

// Read returns the fenced data.
func (d Database) Read(ctx context.Context, db *sql.DB) (rows []history.Row, counters map[string]int64, err error) {
	counters = make(map[string]int64)
	err = each(ctx, db, d.SQL(`SELECT k, n FROM {}counter`), func(scan func(...any) error) error {
		var key string
		var n int64
		err := scan(&key, &n)
		counters[key] = n
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	err = each(ctx, db, d.SQL(`SELECT op, k, v, token, process, holder FROM {}journal`), func(scan func(...any) error) error {
		var r history.Row
		err := scan(&r.Op, &r.Key, &r.Value, &r.Token, &r.Process, &r.Lock)
		rows = append(rows, r)
		return err
	})
	return rows, counters, err
}

// Effects are what was done once.
func (d Database) Effects(ctx context.Context, db *sql.DB) (rows []history.Row, err error) {
	err = each(ctx, db, d.SQL(`SELECT op, k FROM {}effect`), func(scan func(...any) error) error {
		var r history.Row
		err := scan(&r.Op, &r.Key)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// Held are the keys that have a holder now.
func (d Database) Held(ctx context.Context, db *sql.DB) (rows []history.Row, err error) {
	table, err := rowlock.OpenTable(db, d.Dialect(), &rowlock.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	records, err := table.Inspect(ctx, lease.Filter{Held: true})
	for _, r := range records {
		if !strings.HasPrefix(r.Key, "\x00") { // rowlock's own, which no process was granted
			rows = append(rows, history.Row{Key: r.Key, Token: r.Token})
		}
	}
	return rows, err
}

func each(ctx context.Context, db *sql.DB, query string, f func(scan func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Drop removes all tables.
func (d Database) Drop(ctx context.Context, db *sql.DB) error {
	protected := d.unprotect(ctx, db)
	_, one := db.ExecContext(ctx, d.SQL(`DROP TABLE IF EXISTS {}counter`))
	_, two := db.ExecContext(ctx, d.SQL(`DROP TABLE IF EXISTS {}journal`))
	_, three := db.ExecContext(ctx, d.SQL(`DROP TABLE IF EXISTS {}effect`))
	_, four := db.ExecContext(ctx, d.SQL(`DROP TABLE IF EXISTS {}pulse`))
	if d.refuses() {
		_, err := db.ExecContext(ctx, d.SQL(`DROP FUNCTION IF EXISTS {}refuse()`))
		three = errors.Join(three, err)
	}
	return errors.Join(protected, one, two, three, four, schema.Uninstall(ctx, db, d.Dialect()), d.removeTenant(ctx, db))
}
