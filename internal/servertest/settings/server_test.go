package settings_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/servertest/settings"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// private is a server of the test's own, with tables of a user who may do everything in one
// database and nothing else: an administrator is spared by some settings.
type private struct {
	testdb.Kind
	*testdb.Env
	admin *sql.Conn                                        // whose session has settings of its own
	try   func(ctx context.Context, f settings.Flip) error // sets it, and undoes that
	set   func(ctx context.Context, flips []settings.Flip) error
	undo  func(ctx context.Context) error
	start func(options ...string) // starts it again
}

var starts = map[string]func(t *testing.T, k testdb.Kind, made ...string) *private{
	"postgres": startPostgres, "mariadb": startInnoDB, "mysql": startInnoDB,
}

// eachPrivate has a server for each product that is drawn, made with options.
func eachPrivate(t *testing.T, made map[string][]string, f func(t *testing.T, p *private)) {
	t.Helper()
	for _, k := range testdb.Drawn(t, testdb.Servers) {
		t.Run(k.Name, func(t *testing.T) {
			k.DSN(t) // skips
			t.Parallel()
			f(t, starts[k.Name](t, k, made[k.Name]...))
		})
	}
}

// tries run with new sessions on both sides.
func (p *private) tries(t *testing.T, verdicts map[string]settings.Verdict) *settings.Tries {
	t.Helper()
	p.DB.SetMaxIdleConns(-1)
	kind := func(name, kind string) bool { return verdicts[strings.ToLower(name)].Kind == kind }
	return &settings.Tries{
		Env: p.Env,
		Open: func(ctx context.Context, flips []settings.Flip) (*sql.DB, error) {
			if err := p.set(ctx, flips); err != nil {
				return nil, err
			}
			return sql.Open(p.Driver, p.Source)
		},
		Undo:        p.undo,
		Connections: func(name string) bool { return kind(name, "connections") },
		Checked:     func(name string) bool { return kind(name, "checked") },
	}
}

// A setting of a new version of a server has no verdict yet: read what it does, and write one.
//
// Whatever a server is set to while it runs, locks do what they do without, or Open refuses with an
// error that names the setting: by SET GLOBAL, which a new connection begins with, and on
// PostgreSQL by ALTER ROLE, ALTER DATABASE, and ALTER SYSTEM with a reload.
func TestNoSettingOfAServerChangesWhatStatementsMean(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	eachPrivate(t, nil, func(t *testing.T, p *private) {
		verdicts, err := settings.Verdicts(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		var flips []settings.Flip
		for _, s := range p.all(t) {
			v, ok := verdicts[strings.ToLower(s.Name)]
			if !ok {
				t.Errorf("%s has the setting %s, now %q: give it a verdict in %[1]s-server.list", p.Name, s.Name, s.Now)
			}
			if ok && v.Kind != "unflipped" && strings.Contains(s.Name, os.Getenv("ROWLOCK_TEST_SETTING")) {
				flips = append(flips, p.takes(t, s, v.Kind)...)
			}
		}
		tries := p.tries(t, verdicts)
		if os.Getenv("ROWLOCK_TEST_ONE_AT_A_TIME") == "" {
			t.Logf("%d values", len(flips))
			report(t, tries.Run(t.Context(), flips))
			return
		}
		for _, f := range flips {
			report(t, tries.Run(t.Context(), []settings.Flip{f}))
		}
	})
}

// all are the settings that a session begins with and those that only the server has.
func (p *private) all(t *testing.T) []settings.Setting {
	t.Helper()
	db, err := sql.Open(p.Driver, p.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ofSession, err := settings.Settings(t.Context(), p.Name, db)
	if err != nil {
		t.Fatal(err)
	}
	ofServer, err := settings.ServerSettings(t.Context(), p.Name, p.admin)
	if err != nil {
		t.Fatal(err)
	}
	if len(ofSession) < 40 || len(ofServer) < 40 {
		t.Fatalf("%d settings of a session, %d of the server", len(ofSession), len(ofServer))
	}
	return append(ofSession, ofServer...)
}

// takes returns the values of a setting that the server takes: the first of them in a short run,
// because each further one is a conformance of its own.
func (p *private) takes(t *testing.T, s settings.Setting, kind string) (flips []settings.Flip) {
	t.Helper()
	for _, v := range s.Values {
		f := settings.Flip{Name: s.Name, Value: v}
		if err := p.try(t.Context(), f); err != nil {
			t.Logf("the server does not take %s: %v", f, err)
			continue
		}
		if flips = append(flips, f); !testdb.Whole() {
			return flips
		}
	}
	return few(flips, kind == "none")
}

// ownInnoDB is what the conformance's own statements need, and the rival's sessions have too.
func ownInnoDB(product string) map[string]string {
	if product == "mariadb" {
		return map[string]string{"autocommit": "1", "tx_read_only": "0"}
	}
	return map[string]string{"autocommit": "1", "transaction_read_only": "0"}
}

// made are the ways in which the data of a server are made for TestNothingAServerStartsWith….
var made = map[string][]string{
	"postgres": {"TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"}, // server_encoding
	"mariadb":  {"--innodb-page-size=4k"},
	"mysql":    {"--innodb-page-size=4k", "--lower-case-table-names=1"},
}

// started are the values that a server is started with.
var started = map[string][]settings.Flip{
	"postgres": {
		{Name: "wal_level", Value: "minimal"},
		{Name: "max_wal_senders", Value: "0"},
		{Name: "max_replication_slots", Value: "0"},
		{Name: "wal_log_hints", Value: "on"},
		{Name: "max_prepared_transactions", Value: "10"},
		{Name: "track_commit_timestamp", Value: "on"},
		{Name: "max_locks_per_transaction", Value: "10"},
		{Name: "max_pred_locks_per_transaction", Value: "10"},
		{Name: "dynamic_shared_memory_type", Value: "mmap"},
		{Name: "huge_pages", Value: "off"},
		// Its least, 64, is too few for a server whose parents left it a few open files.
		{Name: "max_files_per_process", Value: "100"},
		{Name: "max_worker_processes", Value: "0"},
		{Name: "shared_buffers", Value: "1MB"},
		{Name: "track_activity_query_size", Value: "100"},
		{Name: "wal_buffers", Value: "32kB"},
		{Name: "autovacuum_freeze_max_age", Value: "100000"},
		{Name: "autovacuum_multixact_freeze_max_age", Value: "10000"},
		{Name: "superuser_reserved_connections", Value: "0"},
		{Name: "old_snapshot_threshold", Value: "0"},
		{Name: "archive_mode", Value: "off"},
		{Name: "wal_level", Value: "logical"},
		{Name: "archive_mode", Value: "on"},
	},
	"mariadb": {
		{Name: "innodb_rollback_on_timeout", Value: "ON"},
		{Name: "lower_case_table_names", Value: "1"},
		{Name: "innodb_autoinc_lock_mode", Value: "0"},
		{Name: "skip_log_bin", Value: "ON"},
		{Name: "performance_schema", Value: "ON"},
		{Name: "thread_handling", Value: "pool-of-threads"},
		{Name: "transaction_isolation", Value: "SERIALIZABLE"},
		{Name: "metadata_locks_hash_instances", Value: "1"},
		{Name: "table_open_cache_instances", Value: "1"},
		{Name: "log_slave_updates", Value: "OFF"},
	},
	"mysql": {
		{Name: "innodb_rollback_on_timeout", Value: "ON"},
		{Name: "innodb_autoinc_lock_mode", Value: "0"},
		{Name: "skip_log_bin", Value: "ON"},
		{Name: "performance_schema", Value: "OFF"},
		{Name: "transaction_isolation", Value: "SERIALIZABLE"},
		{Name: "disabled_storage_engines", Value: "MyISAM,MEMORY,CSV"},
		{Name: "innodb_buffer_pool_instances", Value: "2"},
		{Name: "innodb_adaptive_hash_index_parts", Value: "1"},
		{Name: "table_open_cache_instances", Value: "1"},
		{Name: "log_replica_updates", Value: "OFF"},
	},
}

// needs are values without which a server does not start with another.
var needs = map[settings.Flip][]settings.Flip{
	{Name: "wal_level", Value: "minimal"}: {{Name: "max_wal_senders", Value: "0"}},
}

// What a server was made with, and takes only as it starts, changes nothing either. ROWLOCK_TEST_WHOLE
// starts it with each setting alone too.
func TestNothingAServerStartsWithChangesWhatStatementsMean(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	eachPrivate(t, made, func(t *testing.T, p *private) {
		tries := p.tries(t, nil)
		tries.Undo = nil
		tries.Open = func(_ context.Context, flips []settings.Flip) (*sql.DB, error) {
			var options []string
			for _, f := range flips {
				if p.Driver == "pgx" {
					options = append(options, "-c", f.Name+"="+f.Value)
				} else {
					options = append(options, "--loose-"+f.Name+"="+f.Value)
				}
			}
			p.start(options...)
			return sql.Open(p.Driver, p.Source)
		}
		report(t, tries.Run(t.Context(), started[p.Name]))
		for _, f := range started[p.Name] {
			if testdb.Whole() {
				report(t, tries.Run(t.Context(), append(needs[f], f)))
			}
		}
	})
}

// startInnoDB starts a MariaDB or MySQL.
func startInnoDB(t *testing.T, k testdb.Kind, made ...string) *private {
	t.Helper()
	a := standby.MakeAlone(t, k.Name, made)
	p := &private{Kind: k, start: func(options ...string) { a.Restart(t, options...) }}
	for _, q := range []string{`CREATE USER app@'127.0.0.1'`, `GRANT ALL ON rowlock_test.* TO app@'127.0.0.1'`} {
		if _, err := a.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := mysqldriver.ParseDSN(a.Source)
	if err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.MultiStatements = "app", false
	source := cfg.FormatDSN()
	cfg.Params = ownInnoDB(k.Name)
	p.admin = session(t, a.DB)
	old := make(map[string]string)
	p.set = func(ctx context.Context, flips []settings.Flip) error {
		for _, f := range slices.SortedStableFunc(slices.Values(flips), charactersLast) {
			var now sql.NullString
			if err := p.admin.QueryRowContext(ctx, `SELECT @@GLOBAL.`+f.Name).Scan(&now); err != nil {
				return err
			}
			if _, err := p.admin.ExecContext(ctx, setGlobal(f)); err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
			if _, twice := old[f.Name]; !twice && now.Valid {
				old[f.Name] = now.String
			}
			if f.Name == "super_read_only" { // which turns the other on, and not off
				old["read_only"] = "OFF"
			}
		}
		return nil
	}
	p.undo = func(ctx context.Context) (err error) {
		for name, value := range old {
			_, e := p.admin.ExecContext(ctx, setGlobal(settings.Flip{Name: name, Value: value}))
			err = errors.Join(err, e)
			delete(old, name)
		}
		return err
	}
	p.try = func(ctx context.Context, f settings.Flip) error {
		return cmp.Or(p.set(ctx, []settings.Flip{f}), p.undo(ctx))
	}
	p.Env = k.At(t, cfg.FormatDSN())
	p.Source = source
	return p
}

func setGlobal(f settings.Flip) string {
	v := f.Value
	if !number(v) {
		v = "'" + strings.ReplaceAll(strings.ReplaceAll(v, `\`, `\\`), "'", "''") + "'"
	}
	return fmt.Sprintf("SET GLOBAL %s = %s", f.Name, v)
}

func session(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// own are what an administrator's session needs to go on while all others have something else.
const own = `SET default_transaction_read_only = off; SET statement_timeout = 0; SET lock_timeout = 0;
	SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0;
	SET client_encoding = UTF8; SET standard_conforming_strings = on; SET exit_on_error = off; SET deadlock_timeout = 1000`

// startPostgres starts one.
func startPostgres(t *testing.T, k testdb.Kind, made ...string) *private {
	t.Helper()
	l := standby.StartLone(t, "-c", "fsync=off")
	database := strings.Join(append([]string{`CREATE DATABASE app OWNER app`}, made...), " ")
	for _, q := range []string{`CREATE ROLE app LOGIN`, database} {
		if _, err := l.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	p := &private{Kind: k, start: func(options ...string) { l.Restart(t, append(options, "-c", "fsync=off")...) }}
	p.admin = session(t, l.DB)
	if _, err := p.admin.ExecContext(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	source := strings.Replace(l.Source, "postgres@", "app@", 1)
	g := &ofPostgres{admin: p.admin, db: l.DB, ways: []string{"ALTER ROLE app", "ALTER DATABASE app", system}}
	l.DB.SetMaxIdleConns(-1)
	p.set, p.undo, p.try = g.set, g.undo, g.try
	p.Env = k.At(t, strings.Replace(source, "/postgres?", "/app?", 1))
	return p
}

// system is the way that needs a reload.
const system = "ALTER SYSTEM"

// ofPostgres flips what new sessions begin with.
type ofPostgres struct {
	admin          *sql.Conn
	db             *sql.DB // whose sessions are new
	ways           []string
	calls, reloads int
	done           map[string]bool
}

// set takes one way for all, and the next for the next call. What that way does not take, such as
// a setting of the server's alone, goes by ALTER SYSTEM.
func (g *ofPostgres) set(ctx context.Context, flips []settings.Flip) error {
	way := g.ways[g.calls%len(g.ways)]
	g.calls++
	g.done = make(map[string]bool)
	for _, f := range flips {
		by, err := g.alter(ctx, f, way, system)
		if err != nil {
			return err
		}
		g.done[by] = true
	}
	return g.reload(ctx)
}

// alter returns the first way by which it was set.
func (g *ofPostgres) alter(ctx context.Context, f settings.Flip, ways ...string) (by string, err error) {
	value := "'" + strings.ReplaceAll(f.Value, "'", "''") + "'"
	if f.Name == "search_path" { // a list whose quotes stay
		value = f.Value
	}
	for _, by = range ways {
		if _, err = g.admin.ExecContext(ctx, fmt.Sprintf(`%s SET "%s" = %s`, by, f.Name, value)); err == nil {
			return by, nil
		}
	}
	return by, fmt.Errorf("%s: %w", f, err)
}

// try needs no reload, because ALTER checks a value too.
func (g *ofPostgres) try(ctx context.Context, f settings.Flip) error {
	by, err := g.alter(ctx, f, g.ways...)
	if err != nil {
		return err
	}
	_, err = g.admin.ExecContext(ctx, by+` RESET ALL`)
	return err
}

func (g *ofPostgres) undo(ctx context.Context) (err error) {
	for way := range g.done {
		_, e := g.admin.ExecContext(ctx, way+" RESET ALL")
		err = errors.Join(err, e)
	}
	return cmp.Or(err, g.reload(ctx))
}

// reload returns when sessions begin with what ALTER SYSTEM has set: the server reads it later than
// it says. The prefix of its log tells.
func (g *ofPostgres) reload(ctx context.Context) error {
	if !g.done[system] {
		return nil
	}
	g.reloads++
	turn := fmt.Sprint("reload ", g.reloads)
	for _, q := range []string{`ALTER SYSTEM SET log_line_prefix = '` + turn + `'`, `SELECT pg_reload_conf()`} {
		if _, err := g.admin.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	for now := ""; now != turn; time.Sleep(time.Millisecond) {
		if err := g.db.QueryRowContext(ctx, `SHOW log_line_prefix`).Scan(&now); err != nil {
			return err
		}
	}
	var wrong sql.NullString
	err := g.admin.QueryRowContext(ctx, `SELECT string_agg(name || ' ' || error, '; ')
		FROM pg_file_settings WHERE error IS NOT NULL`).Scan(&wrong)
	if err == nil && wrong.Valid {
		err = fmt.Errorf("the server does not take %s", wrong.String)
	}
	return err
}
