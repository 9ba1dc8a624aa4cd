package rowlock_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/schema"
)

func TestOpenRefusesTablesThatACrashWouldEmpty(t *testing.T) {
	tables := []string{"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_meta"}
	onScene(t, "postgres", func(s *scene) {
		for _, table := range tables {
			s.exec(s.env.DB, `ALTER TABLE {`+table+`} SET UNLOGGED`)
			s.refused(s.env.DB, s.env.Dialect, rowlock.ErrNotDurable, s.env.Table(table), "UNLOGGED", "SET LOGGED")
			s.exec(s.env.DB, `ALTER TABLE {`+table+`} SET LOGGED`)
		}
		s.take(s.client(), "k")
	})
	for _, product := range []string{"mysql", "mariadb"} {
		onScene(t, product, func(s *scene) {
			for i, engine := range []string{"MyISAM", "MEMORY", "MyISAM"} {
				s.exec(s.env.DB, `ALTER TABLE {`+tables[i]+`} ENGINE = `+engine)
				s.refused(s.env.DB, s.env.Dialect, rowlock.ErrNotDurable, s.env.Table(tables[i]), engine, "ENGINE=InnoDB")
				s.exec(s.env.DB, `ALTER TABLE {`+tables[i]+`} ENGINE = InnoDB`)
			}
			s.take(s.client(), "k")
		})
	}
}

// In memory every connection has a database of its own, or all are gone with the process.
func TestOpenRefusesDatabasesInMemory(t *testing.T) {
	for _, dsn := range []string{
		":memory:", "file::memory:", "file::memory:?cache=shared", "file:refusal?mode=memory&cache=shared", "file:/refusal?vfs=memdb", "", "file:",
	} {
		t.Run(dsn, func(t *testing.T) {
			s := &scene{T: t}
			db := s.dial("sqlite", dsn)
			for _, n := range []int{0, 1} {
				db.SetMaxIdleConns(n)
				s.refused(db, sqlite.New(), rowlock.ErrNotDurable, "in memory", "give it a file")
			}
		})
	}
}

func (s *scene) dial(driver, dsn string) *sql.DB {
	s.Helper()
	db, err := sql.Open(driver, dsn)
	s.ok(err)
	s.Cleanup(func() { _ = db.Close() })
	return db
}

func TestOpenRefusesFilesThatAreNoDatabase(t *testing.T) {
	s := &scene{T: t}
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	s.ok(os.WriteFile(text, []byte(strings.Repeat("This is no database. ", 100)), 0o600))
	s.refused(s.dial("sqlite", text), sqlite.New(), rowlock.ErrWrongDialect, "not a database")
	s.refused(s.dial("sqlite", filepath.Join(dir, "absent", "test.db")), sqlite.New(), rowlock.ErrPrivilege, "unable to open")
	s.refused(s.dial("sqlite", dir), sqlite.New(), rowlock.ErrPrivilege, "unable to open")
}

// A process that may not write the file is told so. The tests may be root's, who may write anything: the process is nobody's.
func TestOpenRefusesFilesThatCannotBeWritten(t *testing.T) {
	s := &scene{T: t}
	dir, err := os.MkdirTemp("", "rowlock-refusal-")
	s.ok(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.ok(os.Chmod(dir, 0o755))
	var files []string
	for _, mode := range []string{"WAL", "DELETE"} {
		file := filepath.Join(dir, mode+".db")
		db := s.dial("sqlite", "file:"+file+"?_pragma=journal_mode("+mode+")")
		s.ok(schema.Migrate(t.Context(), db, sqlite.New()))
		files = append(files, file)
	}
	out := s.asNobody(dir, "TestChildOpens", "ROWLOCK_CHILD_FILES="+strings.Join(files, ","))
	for _, file := range files {
		if !regexp.MustCompile(`(?m)^` + file + `: .*rowlock: read-only.*` + file + `.*may write`).MatchString(out) {
			t.Errorf("%s: %q", file, out)
		}
	}
}

// TestChildOpens is what the process of nobody's runs.
func TestChildOpens(t *testing.T) {
	files := os.Getenv("ROWLOCK_CHILD_FILES")
	if files == "" {
		t.Skip("only for a child process")
	}
	s := &scene{T: t}
	for _, file := range strings.Split(files, ",") {
		c, err := rowlock.Open(s.dial("sqlite", "file:"+file), sqlite.New(), sceneConfig())
		if err == nil {
			_ = c.Close()
		}
		fmt.Printf("%s: %v\n", file, err)
	}
}

// asNobody runs a test of this program as the user nobody.
func (s *scene) asNobody(dir, test string, env ...string) string {
	s.Helper()
	if os.Geteuid() != 0 {
		s.Skip("SKIPPED, NOT TESTED: not root, which can become nobody")
	}
	program := filepath.Join(dir, "program")
	self, err := os.Executable()
	s.ok(err)
	if os.Link(self, program) != nil { // on another file system
		text, err := os.ReadFile(self)
		s.ok(err)
		s.ok(os.WriteFile(program, text, 0o755))
	}
	cmd := exec.CommandContext(s.Context(), program, "-test.run=^"+test+"$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "GOCOVERDIR=", "TMPDIR=/tmp")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// What a crash of the server could forget without anybody's fault is no reason to refuse, but one to say so.
func TestOpenWarnsOfWeakDurability(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		weak := s.with("synchronous_commit=off")
		var log strings.Builder
		weak.clientOn(weak.env.Pool(s), withLog(&log))
		for _, word := range []string{"synchronous_commit is off", "crash", "PostgreSQL"} {
			if !strings.Contains(log.String(), word) {
				s.Errorf("%q does not say %q", log.String(), word)
			}
		}
		conn, err := weak.env.Pool(s).Conn(s.Context())
		s.ok(err)
		session := s.session(s.env.Dialect, conn)
		var commit string
		s.ok(session.Conn().QueryRowContext(s.Context(), `SHOW synchronous_commit`).Scan(&commit))
		if commit != "on" {
			s.Errorf("a lane's synchronous_commit is %s", commit)
		}
	})
	onScene(t, "sqlite", func(s *scene) {
		file := filepath.Join(s.TempDir(), "rollback.db")
		db := s.dial("sqlite", "file:"+file)
		s.ok(schema.Migrate(s.Context(), db, sqlite.New()))
		var log strings.Builder
		c, err := rowlock.Open(db, sqlite.New(), sceneConfig(withLog(&log)))
		s.ok(err)
		s.ok(c.Close())
		for _, word := range []string{"journal_mode is delete", "_pragma=journal_mode(WAL)"} {
			if !strings.Contains(log.String(), word) {
				s.Errorf("%q does not say %q", log.String(), word)
			}
		}
	})
}

func TestProbeWarnsOfWeakDurability(t *testing.T) {
	s := &scene{T: t}
	probe := func(vars ...string) string {
		db, mock, err := sqlmock.New()
		s.ok(err)
		defer db.Close()
		rows := sqlmock.NewRows([]string{"Variable_name", "Value"})
		for _, v := range vars {
			name, value, _ := strings.Cut(v, "=")
			rows.AddRow(name, value)
		}
		mock.ExpectQuery("SHOW GLOBAL VARIABLES").WillReturnRows(rows)
		for range 4 {
			mock.ExpectQuery("information_schema.tables").WillReturnRows(sqlmock.NewRows([]string{"engine"}).AddRow("InnoDB"))
		}
		mock.ExpectQuery("schema_version").WillReturnRows(sqlmock.NewRows([]string{"value"}).AddRow("1"))
		mock.ExpectQuery("count").WillReturnRows(sqlmock.NewRows([]string{"floors", "instances"}).AddRow(256, 1))
		conn, err := db.Conn(t.Context())
		s.ok(err)
		defer conn.Close()
		facts, err := sqlstore.Of(mysql.New()).Probe(context.Background(), conn)
		s.ok(err)
		return strings.Join(facts.Warnings, "\n")
	}
	for want, vars := range map[string][]string{
		"":                               {"innodb_flush_log_at_trx_commit=1", "log_bin=ON", "sync_binlog=1"},
		"innodb_flush_log_at_trx_commit": {"innodb_flush_log_at_trx_commit=2", "log_bin=OFF", "sync_binlog=0"},
		"sync_binlog":                    {"innodb_flush_log_at_trx_commit=1", "log_bin=ON", "sync_binlog=0"},
	} {
		got := probe(append(vars, "version=9.7.4", "read_only=OFF")...)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: warned %q", vars, got)
		}
	}
}

// A server that cannot be reached is an error of its own, with the reason: nothing was sent whose outcome could be unknown.
func TestOpenSaysWhyAServerCannotBeReached(t *testing.T) {
	s := &scene{T: t}
	s.refused(s.dial("pgx", "postgres://nobody@127.0.0.1:1/x?connect_timeout=2"), postgres.New(), syscall.ECONNREFUSED, "connect")
	s.refused(s.dial("mysql", "nobody@tcp(127.0.0.1:1)/x"), mysql.New(), syscall.ECONNREFUSED, "connect")
}

func TestOpenRefusesNothing(t *testing.T) {
	s := &scene{T: t}
	if _, err := rowlock.Open(nil, sqlite.New(), nil); err == nil {
		t.Error("opened without a database")
	} else {
		s.wantErr(err, rowlock.ErrConfig)
	}
	db := s.dial("sqlite", filepath.Join(t.TempDir(), "test.db"))
	s.refused(db, nil, rowlock.ErrConfig, "dialect")
}
