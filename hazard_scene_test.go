package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// scene is one database in one test, and the ways to come to it as several processes would.
type scene struct {
	*testing.T
	env *testdb.Env
}

// scenePatience bounds every wait of these tests. What is waited for comes much sooner, or never.
const scenePatience = 30 * time.Second

func eachScene(t *testing.T, f func(s *scene)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(&scene{t, e}) })
}

// eachServer leaves SQLite out.
func eachServer(t *testing.T, f func(s *scene)) {
	t.Helper()
	for _, k := range testdb.Kinds {
		if k.Name != "sqlite" {
			t.Run(k.Name, func(t *testing.T) { f(&scene{t, k.Open(t)}) })
		}
	}
}

func onScene(t *testing.T, name string, f func(s *scene)) {
	t.Helper()
	for _, k := range testdb.Kinds {
		if k.Name == name {
			t.Run(name, func(t *testing.T) { f(&scene{t, k.Open(t)}) })
		}
	}
}

// part runs f as a subtest on the same tables.
func (s *scene) part(name string, f func(s *scene)) {
	s.Helper()
	s.Run(name, func(t *testing.T) { f(&scene{t, s.env}) })
}

func (s *scene) is(names ...string) bool {
	for _, n := range names {
		if s.env.Name == n {
			return true
		}
	}
	return false
}

func (s *scene) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) wantErr(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("got %v, want %v", err, want)
	}
}

// with returns the Env seen through a DSN with settings added, each "name=value".
func (s *scene) with(settings ...string) *scene {
	e := *s.env
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			continue
		}
		sep := "?"
		if strings.Contains(e.Source, "?") {
			sep = "&"
		}
		e.Source += sep + name + "=" + strings.NewReplacer("+", "%20", "%2C", ",").Replace(url.QueryEscape(value))
	}
	return &scene{s.T, &e}
}

// client is another process: a client with a pool of its own. It does not sweep unless told to.
func (s *scene) client(change ...func(*rowlock.Config)) *rowlock.Client {
	s.Helper()
	return s.clientOn(s.env.Pool(s), change...)
}

func (s *scene) clientOn(db rowlock.DB, change ...func(*rowlock.Config)) *rowlock.Client {
	s.Helper()
	c, err := rowlock.Open(db, s.env.Dialect, sceneConfig(change...))
	s.ok(err)
	s.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return c
}

func sceneConfig(change ...func(*rowlock.Config)) *rowlock.Config {
	cfg := &rowlock.Config{Logger: slog.New(slog.DiscardHandler)}
	cfg.Reaper.Off = true
	for _, f := range change {
		f(cfg)
	}
	return cfg
}

func withTTL(d time.Duration) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.TTL = d }
}

func withPoll(most time.Duration) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.PollMax = most }
}

func withStrategy(st rowlock.Strategy) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.Strategy = st }
}

func withSweep(every time.Duration) func(*rowlock.Config) {
	return func(c *rowlock.Config) {
		c.Reaper = rowlock.ReaperConfig{Every: every, Retention: time.Nanosecond, Pause: -1}
	}
}

var bothStrategies = []rowlock.Strategy{rowlock.Update, rowlock.Insert}

// take gets a key that is free or about to be.
func (s *scene) take(c *rowlock.Client, key string, opts ...rowlock.Option) *rowlock.Lock {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), scenePatience)
	defer cancel()
	l, err := c.Lock(ctx, key, opts...)
	s.ok(err)
	return l
}

// wantHeld asks once, and is refused because somebody has the key.
func (s *scene) wantHeld(c *rowlock.Client, key string) *rowlock.HeldError {
	s.Helper()
	l, err := c.TryLock(s.Context(), key)
	var held *rowlock.HeldError
	switch {
	case err == nil:
		s.Fatalf("%q was granted with token %d while it is held", key, l.Token())
	case !errors.As(err, &held):
		s.Fatalf("%q: %v, want ErrHeld", key, err)
	}
	return held
}

func (s *scene) begin(db *sql.DB, opts *sql.TxOptions) *sql.Tx {
	s.Helper()
	tx, err := db.BeginTx(context.WithoutCancel(s.Context()), opts)
	s.ok(err)
	s.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (s *scene) exec(db execer, query string, args ...any) {
	s.Helper()
	if _, err := db.ExecContext(s.Context(), s.env.SQL(query), args...); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// number asks for one integer.
func (s *scene) number(query string, args ...any) (n int64) {
	s.Helper()
	if err := s.env.DB.QueryRowContext(s.Context(), s.env.SQL(query), args...).Scan(&n); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return n
}

// rows counts the keys that have a row, but for those rowlock keeps for itself.
func (s *scene) rows() int64 {
	s.Helper()
	return s.number(`SELECT count(*) FROM {rowlock} WHERE {key} > ?`, []byte(lease.Reserved+"\xff"))
}

func (s *scene) floor(key string) int64 {
	s.Helper()
	return s.number(`SELECT floor FROM {rowlock_floor} WHERE bucket = ?`, lease.Bucket(key))
}

// eventually waits until done says yes.
func (s *scene) eventually(what string, done func() bool) {
	s.Helper()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	late := time.After(scenePatience)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			s.Fatalf("%s: not within %s", what, scenePatience)
		}
	}
}

// atLeast lets time pass: where the property is about time, not to wait for something.
func (s *scene) atLeast(d time.Duration) { <-time.After(d) }

// quick fails the test if f takes longer than limit.
func (s *scene) quick(limit time.Duration, what string, f func()) {
	s.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > limit {
		s.Errorf("%s took %s, want at most %s", what, took.Round(time.Millisecond), limit)
	}
}

// ledger makes a table of the application's, with one row: id 1, n 0.
func (s *scene) ledger() (table string) {
	s.Helper()
	table = s.env.Dialect.Names().Prefix + "ledger"
	s.exec(s.env.DB, `CREATE TABLE `+table+` (id INT PRIMARY KEY, n INT NOT NULL)`)
	s.Cleanup(func() { _, _ = s.env.DB.Exec(`DROP TABLE ` + table) })
	s.exec(s.env.DB, `INSERT INTO `+table+` VALUES (1, 0)`)
	return table
}

// migrated is another set of tables, on any database of the same kind.
func (s *scene) migrated(source string, opts ...dialect.Option) *scene {
	s.Helper()
	e := &testdb.Env{Kind: s.env.Kind, Dialect: s.env.New(opts...), Source: source}
	e.DB = e.Pool(s)
	s.ok(schema.Migrate(s.Context(), e.DB, e.Dialect))
	s.Cleanup(func() { s.ok(schema.Down(context.Background(), e.DB, e.Dialect)) })
	return &scene{s.T, e}
}

// user makes a database user without rights, and returns the scene as it sees it.
func (s *scene) user() (name string, seen *scene) {
	s.Helper()
	name = s.env.Dialect.Names().Prefix + "user"
	e := *s.env
	if s.is("postgres") {
		s.exec(s.env.DB, `CREATE ROLE `+name+` LOGIN`)
		s.Cleanup(func() {
			s.env.Exec(s, `DROP OWNED BY `+name)
			s.env.Exec(s, `DROP ROLE `+name)
		})
		u, err := url.Parse(e.Source)
		s.ok(err)
		u.User = url.User(name)
		e.Source = u.String()
	} else {
		s.exec(s.env.DB, `CREATE USER `+name)
		s.Cleanup(func() { s.env.Exec(s, `DROP USER `+name) })
		e.Source = name + strings.TrimPrefix(e.Source, e.Source[:strings.Index(e.Source, "@")])
	}
	return name, &scene{s.T, &e}
}

// fromEnvironment reads a whole number from the environment: how hard to try.
func fromEnvironment(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func numbered(i int) string { return fmt.Sprintf("key-%d", i) }

func withLog(w io.Writer) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.Logger = slog.New(slog.NewTextHandler(w, nil)) }
}

// session is a lane's connection in the test's hands.
func (s *scene) session(d *sqlstore.Dialect, conn *sql.Conn) *sqlstore.Session {
	s.Helper()
	session := sqlstore.NewSession(conn)
	s.Cleanup(session.Discard)
	s.ok(d.Setup(s.Context(), session))
	return session
}
