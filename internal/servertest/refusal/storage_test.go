package refusal

import (
	"context"
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
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/schema"
)

func TestOpenRefusesTablesThatACrashWouldEmpty(t *testing.T) {
	tables := []string{"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_meta"}
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		for _, table := range tables {
			s.Exec(s.Env.DB, `ALTER TABLE {`+table+`} SET UNLOGGED`)
			refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrNotDurable, s.Env.Table(table), "UNLOGGED",
				"SET LOGGED")
			s.Exec(s.Env.DB, `ALTER TABLE {`+table+`} SET LOGGED`)
		}
		s.Take(s.Client(), "k")
		prefix := s.Env.Dialect.Names().Prefix
		s.Exec(s.Env.DB, `CREATE TABLE `+prefix+`child () INHERITS ({rowlock})`)
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrNoSchema, s.Env.Table("rowlock"), "inherits", "NO INHERIT")
		s.Exec(s.Env.DB, `DROP TABLE `+prefix+`child`)
		s.Partition(1, `UNLOGGED TABLE`)
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrNotDurable, s.Env.Table("rowlock"), "partition",
			"ALTER TABLE public."+prefix+"part0 SET LOGGED")
	})
	for _, product := range []string{"mysql", "mariadb"} {
		servertest.On(t, product, func(s *servertest.Scene) {
			for i, engine := range []string{"MyISAM", "MEMORY", "MyISAM"} {
				s.Exec(s.Env.DB, `ALTER TABLE {`+tables[i]+`} ENGINE = `+engine)
				refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrNotDurable, s.Env.Table(tables[i]), engine,
					"ENGINE=InnoDB")
				s.Exec(s.Env.DB, `ALTER TABLE {`+tables[i]+`} ENGINE = InnoDB`)
			}
			s.Take(s.Client(), "k")
		})
	}
}

// In memory every connection has a database of its own, or all are gone with the process.
func TestOpenRefusesDatabasesInMemory(t *testing.T) {
	for _, dsn := range []string{
		":memory:", "file::memory:", "file::memory:?cache=shared",
		"file:refusal?mode=memory&cache=shared", "file:/refusal?vfs=memdb", "", "file:",
	} {
		t.Run(dsn, func(t *testing.T) {
			s := &servertest.Scene{T: t}
			db := s.Dial("sqlite", dsn)
			for _, n := range []int{0, 1} {
				db.SetMaxIdleConns(n)
				refused(s, db, sqlite.New(), rowlock.ErrNotDurable, "in memory", "give it a file")
			}
		})
	}
}

func TestOpenRefusesFilesThatAreNoDatabase(t *testing.T) {
	s := &servertest.Scene{T: t}
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	s.OK(os.WriteFile(text, []byte(strings.Repeat("This is no database. ", 100)), 0o600))
	refused(s, s.Dial("sqlite", text), sqlite.New(), rowlock.ErrWrongDialect, "not a database")
	for _, path := range []string{filepath.Join(dir, "absent", "test.db"), dir} {
		refused(s, s.Dial("sqlite", path), sqlite.New(), rowlock.ErrConfig, "unable to open",
			"folder is missing", "is a folder", "sqlite.Open")
	}
}

// A process that may not write the file gets an error that says so. The tests may run as root,
// which may write anything: the process runs as a user without rights.
func TestOpenRefusesFilesThatCannotBeWritten(t *testing.T) {
	s := &servertest.Scene{T: t}
	dir, err := os.MkdirTemp("", "rowlock-refusal-")
	s.OK(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.OK(os.Chmod(dir, 0o755))
	var files []string
	for _, mode := range []string{"WAL", "DELETE"} {
		file := filepath.Join(dir, mode+".db")
		db := s.Dial("sqlite", "file:"+file+"?_pragma=journal_mode("+mode+")")
		s.OK(schema.Migrate(t.Context(), db, sqlite.New()))
		files = append(files, file)
	}
	out := asUserNobody(s, dir, "TestChildOpens", "ROWLOCK_CHILD_FILES="+strings.Join(files, ","))
	for _, file := range files {
		if !regexp.MustCompile(`(?m)^` + file + `: .*rowlock: read-only.*` + file +
			`.*may write`).MatchString(out) {
			t.Errorf("%s: %q", file, out)
		}
	}
}

// TestChildOpens is the process that runs as that user.
func TestChildOpens(t *testing.T) {
	files := os.Getenv("ROWLOCK_CHILD_FILES")
	if files == "" {
		t.Skip("only for a child process")
	}
	s := &servertest.Scene{T: t}
	for _, file := range strings.Split(files, ",") {
		c, err := rowlock.Open(s.Dial("sqlite", "file:"+file), sqlite.New(), servertest.Config())
		if err == nil {
			_ = c.Close()
		}
		fmt.Printf("%s: %v\n", file, err)
	}
}

// asUserNobody runs a test of this program as a system user without rights.
func asUserNobody(s *servertest.Scene, dir, test string, env ...string) string {
	s.Helper()
	if os.Geteuid() != 0 {
		s.Skip("SKIPPED, NOT TESTED: only root can become another user")
	}
	program := filepath.Join(dir, "program")
	self, err := os.Executable()
	s.OK(err)
	if os.Link(self, program) != nil { // on another file system
		text, err := os.ReadFile(self)
		s.OK(err)
		s.OK(os.WriteFile(program, text, 0o755))
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

// What a crash of the server could forget is no reason to refuse, but one to warn.
func TestOpenWarnsOfWeakDurability(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		weak := s.With("synchronous_commit=off")
		var log strings.Builder
		weak.ClientOn(weak.Env.Pool(s), servertest.WithLog(&log))
		for _, word := range []string{"synchronous_commit is off", "crash", "PostgreSQL"} {
			if !strings.Contains(log.String(), word) {
				s.Errorf("%q does not say %q", log.String(), word)
			}
		}
		conn, err := weak.Env.Pool(s).Conn(s.Context())
		s.OK(err)
		session := s.Session(s.Env.Dialect, conn)
		var commit string
		s.OK(session.Conn().QueryRowContext(s.Context(), `SHOW synchronous_commit`).Scan(&commit))
		if commit != "on" {
			s.Errorf("a pinned connection's synchronous_commit is %s", commit)
		}
	})
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		file := filepath.Join(s.TempDir(), "rollback.db")
		db := s.Dial("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
		s.OK(schema.Migrate(s.Context(), db, sqlite.New()))
		var log strings.Builder
		c, err := rowlock.Open(db, sqlite.New(), servertest.Config(servertest.WithLog(&log)))
		s.OK(err)
		s.OK(c.Close())
		for _, word := range []string{"journal_mode is delete", "_pragma=journal_mode(WAL)"} {
			if !strings.Contains(log.String(), word) {
				s.Errorf("%q does not say %q", log.String(), word)
			}
		}
	})
}

func TestProbeWarnsOfWeakDurability(t *testing.T) {
	s := &servertest.Scene{T: t}
	probe := func(vars ...string) string {
		db, mock, err := sqlmock.New()
		s.OK(err)
		defer db.Close()
		rows := sqlmock.NewRows([]string{"Variable_name", "Value"})
		for _, v := range vars {
			name, value, _ := strings.Cut(v, "=")
			rows.AddRow(name, value)
		}
		mock.ExpectQuery("SHOW GLOBAL VARIABLES").WillReturnRows(rows)
		mock.ExpectQuery("log_bin").WillReturnRows(
			sqlmock.NewRows([]string{"logs", "format", "room"}).AddRow(0, "ROW", uint64(1)<<32))
		for range 5 {
			mock.ExpectQuery("information_schema.tables").WillReturnRows(
				sqlmock.NewRows([]string{"engine", "keyed"}).AddRow("InnoDB", true))
		}
		mock.ExpectQuery("schema_version").WillReturnRows(sqlmock.NewRows([]string{"value", "from", "name"}).AddRow("3", nil, "schema_version"))
		mock.ExpectQuery("count").WillReturnRows(
			sqlmock.NewRows([]string{"floors"}).AddRow(256))
		conn, err := db.Conn(t.Context())
		s.OK(err)
		defer conn.Close()
		facts, err := sqlstore.Of(mysql.New()).Probe(context.Background(), conn)
		s.OK(err)
		return strings.Join(facts.Warnings, "\n")
	}
	for want, vars := range map[string][]string{
		"": {
			"innodb_flush_log_at_trx_commit=1", "log_bin=ON", "sync_binlog=1",
		},
		"innodb_flush_log_at_trx_commit": {
			"innodb_flush_log_at_trx_commit=2", "log_bin=OFF", "sync_binlog=0",
		},
		"sync_binlog": {"innodb_flush_log_at_trx_commit=1", "log_bin=ON", "sync_binlog=0"},
	} {
		got := probe(append(vars, "version=9.7.4", "read_only=OFF")...)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: warned %q", vars, got)
		}
	}
}

// A server that cannot be reached is an error of its own, with the reason: no request was sent
// whose outcome could be unknown.
func TestOpenSaysWhyAServerCannotBeReached(t *testing.T) {
	s := &servertest.Scene{T: t}
	refused(s, s.Dial("pgx", "postgres://nobody@127.0.0.1:1/x?connect_timeout=2"), postgres.New(),
		syscall.ECONNREFUSED, "connect")
	refused(s, s.Dial("mysql", "nobody@tcp(127.0.0.1:1)/x"), mysql.New(), syscall.ECONNREFUSED,
		"connect")
}

func TestOpenRefusesNothing(t *testing.T) {
	s := &servertest.Scene{T: t}
	if _, err := rowlock.Open(nil, sqlite.New(), nil); err == nil {
		t.Error("opened without a database")
	} else {
		s.WantErr(err, rowlock.ErrConfig)
	}
	db := s.Dial("sqlite", filepath.Join(t.TempDir(), "test.db"))
	refused(s, db, nil, rowlock.ErrConfig, "dialect")
}
