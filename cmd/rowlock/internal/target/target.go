// Package target connects to the database that a DSN names.
package target

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // sql.Open("pgx", …)

	"github.com/rowlockdb/rowlock/dialect"
	rowmysql "github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Settings say where rowlock's tables are.
type Settings struct {
	DSN, Prefix, Schema string
	// Pooled says that PostgreSQL is behind PgBouncer in transaction mode.
	Pooled bool
	// RequireTLS refuses to connect to another host without TLS.
	RequireTLS bool
}

// Flags name the tables as the flags of a command do: " --prefix app_", or nothing.
func (s Settings) Flags() string {
	return shown.Flags(sqlstore.Names{Prefix: s.Prefix, Schema: s.Schema})
}

// Target is a database.
type Target struct {
	DB      *sql.DB
	Dialect dialect.Dialect
	// Kind is "postgres", "mysql" (MariaDB too) or "sqlite", and Name what an operator calls the
	// database, without a password.
	Kind, Name string
	Settings   Settings
	// Warning says what another host could get, or is empty.
	Warning string
}

const forms = "write postgres://USER@HOST/DB, mysql://USER@HOST/DB or sqlite:FILE"

// Kind returns the kind of database that a DSN names. Its error wraps lease.ErrConfig.
func Kind(dsn string) (string, error) {
	scheme, _, _ := strings.Cut(dsn, ":")
	switch {
	case dsn == "":
		return "", fmt.Errorf("%w: no database is named: give --dsn or set ROWLOCK_DSN; %s",
			lease.ErrConfig, forms)
	case scheme == "postgres" || scheme == "postgresql":
		return "postgres", nil
	case scheme == "mysql" || scheme == "mariadb":
		return "mysql", nil
	case scheme == "sqlite":
		return "sqlite", nil
	}
	// What stands before the first colon is shown only if it is surely a scheme: it may be the user,
	// or the password, of a DSN in another form.
	if !strings.HasPrefix(dsn[len(scheme):], "://") || !isScheme.MatchString(scheme) {
		scheme = "another form"
	} else {
		scheme = "the scheme " + scheme
	}
	return "", fmt.Errorf("%w: --dsn has %s: %s", lease.ErrConfig, scheme, forms)
}

var isScheme = regexp.MustCompile(`^[a-z]{1,12}$`)

// Dialect returns the dialect of s. It connects to nothing.
func (s Settings) Dialect() (dialect.Dialect, string, error) {
	kind, err := Kind(s.DSN)
	if err != nil {
		return nil, "", err
	}
	var opts []dialect.Option
	if s.Prefix != "" {
		opts = append(opts, dialect.Prefix(s.Prefix))
	}
	if s.Schema != "" {
		opts = append(opts, dialect.Schema(s.Schema))
	}
	switch {
	case s.Pooled && kind != "postgres":
		return nil, "", fmt.Errorf("%w: --pooled is for PostgreSQL: leave it out", lease.ErrConfig)
	case s.Schema != "" && kind == "sqlite":
		return nil, "", fmt.Errorf("%w: --schema %q: SQLite has no schemas: leave it out",
			lease.ErrConfig, s.Schema)
	case s.Pooled:
		opts = append(opts, postgres.Pooled())
	}
	return map[string]func(...dialect.Option) dialect.Dialect{
		"postgres": postgres.New, "mysql": rowmysql.New, "sqlite": sqlite.New,
	}[kind](opts...), kind, nil
}

// Open returns the database that s names, after a round trip to it. Its errors have one line and no
// password.
func Open(ctx context.Context, s Settings) (*Target, error) {
	d, kind, err := s.Dialect()
	if err != nil {
		return nil, err
	}
	t := &Target{Dialect: d, Kind: kind, Settings: s}
	if kind == "sqlite" {
		return t.openFile(ctx, strings.TrimPrefix(s.DSN, "sqlite:"))
	}
	u, err := url.Parse(s.DSN)
	if err != nil || strings.Contains(afterHost(s.DSN), "@") {
		// The error of net/url has the whole DSN, and the password in it.
		return nil, fmt.Errorf("%w: --dsn is no URL: escape special characters as %%XX, also in the "+
			"password (/ is %%2F, @ is %%40); %s", lease.ErrConfig, forms)
	}
	t.Name = kind + "://" + u.Host + u.Path
	return t, t.dial(ctx, u)
}

// afterHost returns what follows the host of a URL. With an @ there, a password had a /, a ? or a
// #, which ended it: its rest would be taken for a path and be shown.
func afterHost(dsn string) string {
	_, rest, _ := strings.Cut(dsn, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return rest[i:]
	}
	return ""
}

func (t *Target) openFile(ctx context.Context, path string) (*Target, error) {
	t.Name = "sqlite:" + path
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && path != "" {
		return nil, fmt.Errorf("%w: the file %s is missing: correct the path, or create it with "+
			"`rowlock migrate up --create%s`", lease.ErrConfig, path, t.Settings.Flags())
	}
	var pragmas []string
	if adapter.IsReading(ctx) {
		pragmas = []string{"journal_mode(unchanged)"} // no mode that SQLite knows: the file keeps its own
	}
	db, err := sqlite.Open(path, pragmas...)
	if err != nil {
		return nil, err
	}
	t.DB = db
	t.locate(ctx)
	return t, nil
}

// Names are those of the tables.
func (t *Target) Names() sqlstore.Names { return sqlstore.Of(t.Dialect).Names() }

// Schema is what a command under run needs to name the same tables, whatever its own session does:
// empty for SQLite, which has none, and for a name that --schema does not take.
func (t *Target) Schema() string {
	n := t.Names()
	if t.Kind == "sqlite" || (sqlstore.Names{Schema: n.Schema}).Check() != nil {
		return t.Settings.Schema
	}
	return n.Schema
}

// locate has every statement name the schema of the tables. What a command does next says why there
// is none: the doctor reports it.
func (t *Target) locate(ctx context.Context) {
	if d, err := sqlstore.Of(t.Dialect).Located(ctx, t.DB); err == nil {
		t.Dialect = d
	}
}

// Create makes the file of an SQLite DSN, empty. Of a server's DSN it does nothing.
func (s Settings) Create() error {
	path, ok := strings.CutPrefix(s.DSN, "sqlite:")
	if !ok || path == "" {
		return nil
	}
	db, err := sqlite.Open(path)
	if err == nil {
		err = db.Close()
	}
	return err
}

func (t *Target) dial(ctx context.Context, u *url.URL) error {
	if err := t.prepare(u); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := t.DB.PingContext(ctx); err != nil {
		_ = t.DB.Close()
		return &UnreachableError{Name: t.Name, Cause: err}
	}
	t.locate(ctx)
	return nil
}

// prepare makes the pool, unless the way to the server is refused. Nothing is sent.
func (t *Target) prepare(u *url.URL) error {
	if t.Kind == "mysql" {
		return t.prepareMySQL(u)
	}
	hops, err := postgresHops(t.Settings.DSN)
	if err == nil {
		err = t.guard(hops)
	}
	if err == nil {
		t.DB, err = sql.Open("pgx", t.Settings.DSN)
	}
	return err
}

func (t *Target) prepareMySQL(u *url.URL) error {
	cfg, err := mysqlConfig(u)
	if err != nil {
		return err
	}
	if err := t.guard(mysqlHops(cfg)); err != nil {
		return err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return fmt.Errorf("%w: --dsn: %s", lease.ErrConfig, withoutDSN(err, t.Settings.DSN))
	}
	t.DB = sql.OpenDB(connector)
	return nil
}

// mysqlConfig turns mysql://USER:PASSWORD@HOST:PORT/DB?PARAMETER=… into the driver's settings. The
// parameters are the driver's, and socket: the path of a Unix socket.
func mysqlConfig(u *url.URL) (*mysql.Config, error) {
	query := u.Query()
	for name := range query {
		if strings.Contains(strings.ToLower(name), "password") && !strings.HasPrefix(name, "allow") {
			// The driver would send it as a variable, and the server's error would show it.
			return nil, fmt.Errorf("%w: --dsn has the parameter %s: write mysql://USER:PASSWORD@HOST/DB",
				lease.ErrConfig, name)
		}
	}
	network, address := "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306"))
	where := "tcp(" + address + ")" // by which the driver names the server of a certificate
	if query.Has("socket") {
		network, address, where = "unix", query.Get("socket"), ""
		query.Del("socket")
	}
	cfg, err := mysql.ParseDSN(where + "/?" + query.Encode())
	if err != nil {
		return nil, fmt.Errorf("%w: --dsn: %s", lease.ErrConfig, withoutDSN(err, u.String()))
	}
	// What a DSN of the driver cannot say: a user with a colon, a socket with an @.
	cfg.Net, cfg.Addr, cfg.DBName = network, address, strings.TrimPrefix(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Logger = &mysql.NopLogger{} // a dead connection is an error too, and once is enough
	return cfg, nil
}

// UnreachableError says that a database does not answer.
type UnreachableError struct {
	Name  string
	Cause error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("rowlock: %s cannot be reached: %s: check that it runs, and --dsn",
		e.Name, keytext.Error(e.Cause))
}

func (e *UnreachableError) Unwrap() error { return e.Cause }
