package refusal

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

func TestOpenRefusesReadOnlyConnections(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		refused(s, s.With("default_transaction_read_only=on").Env.Pool(s), s.Env.Dialect,
			rowlock.ErrReadOnly, "default_transaction_read_only", "turn it off")
		name, seen := s.User()
		s.Exec(s.Env.DB, `ALTER ROLE `+name+` SET default_transaction_read_only = on`)
		refused(s, seen.Env.Pool(s), s.Env.Dialect, rowlock.ErrReadOnly, "default_transaction_read_only",
			"turn it off")
	})
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		refused(s, s.With("mode=ro").Env.Pool(s), s.Env.Dialect, rowlock.ErrReadOnly, "test.db",
			"mode=ro")
		refused(s, s.With("immutable=1").Env.Pool(s), s.Env.Dialect, rowlock.ErrReadOnly, "test.db",
			"mode=ro")
		refused(s, s.With("_pragma=query_only(1)").Env.Pool(s), s.Env.Dialect, rowlock.ErrReadOnly,
			"query_only", "leave")
	})
}

// A session that only defaults to reading is corrected: that is a habit of careful applications,
// not a replica.
func TestPinnedConnectionsWriteWhereSessionsDefaultToReading(t *testing.T) {
	for name, setting := range map[string]string{
		"mysql": "transaction_read_only=1", "mariadb": "tx_read_only=1",
	} {
		servertest.On(t, name, func(s *servertest.Scene) {
			l := s.Take(s.With(setting).Client(), "k")
			s.OK(l.Unlock(s.Context()))
		})
	}
}

// variables scripts the variables of a MySQL or MariaDB.
func variables(s *servertest.Scene, vars ...string) rowlock.DB {
	db, mock, err := sqlmock.New()
	s.OK(err)
	s.Cleanup(func() { _ = db.Close() })
	rows := sqlmock.NewRows([]string{"Variable_name", "Value"})
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		rows.AddRow(name, value)
	}
	mock.ExpectQuery("SHOW GLOBAL VARIABLES").WillReturnRows(rows)
	return db
}

func TestOpenRefusesReplicas(t *testing.T) {
	s := &servertest.Scene{T: t}
	for _, v := range []string{"read_only", "super_read_only", "innodb_read_only"} {
		for _, on := range []string{"ON", "1"} {
			refused(s, variables(s, "version=9.7.4", v+"="+on), mysql.New(), rowlock.ErrReadOnly, v,
				"primary")
		}
	}
	// MariaDB 12 has names for it.
	refused(s, variables(s, "version=12.2.2-MariaDB", "read_only=NO_LOCK"), mysql.New(),
		rowlock.ErrReadOnly, "read_only", "primary")
	refused(s, variables(s, "version=12.2.2-MariaDB", "read_only=NO_LOCK_NO_ADMIN"), mysql.New(),
		rowlock.ErrReadOnly, "read_only", "primary")
}

// Galera and multi-primary groups certify whole transactions when they commit, and lock rows on
// one node only.
func TestOpenRefusesClustersWithSeveralWriters(t *testing.T) {
	s := &servertest.Scene{T: t}
	refused(s, variables(s, "version=10.11.19-MariaDB", "wsrep_on=ON"), mysql.New(),
		rowlock.ErrTopology, "wsrep_on", "Galera", "one primary")
	refused(s, variables(s, "version=8.4.0", "wsrep_on=1", "read_only=OFF"), mysql.New(),
		rowlock.ErrTopology, "wsrep_on")
	refused(s, variables(s, "version=9.7.4",
		"group_replication_group_name=f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"group_replication_single_primary_mode=OFF"), mysql.New(), rowlock.ErrTopology,
		"group_replication_single_primary_mode", "single-primary mode")
	// A secondary of a single-primary group is a replica.
	refused(s, variables(s, "version=9.7.4",
		"group_replication_group_name=f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"group_replication_single_primary_mode=ON", "super_read_only=ON"), mysql.New(),
		rowlock.ErrReadOnly, "super_read_only", "primary")
}

// A hot standby accepts connections and reads like a primary. This one is made of the test server
// by pg_basebackup.
func TestOpenRefusesAHotStandby(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		source := standby(s)
		e := *s.Env
		e.Source = source
		refused(s, e.Pool(s), s.Env.Dialect, rowlock.ErrReadOnly, "standby",
			"target_session_attrs=read-write")
	})
}

// standby starts a replica of the scene's server and returns its DSN.
func standby(s *servertest.Scene) (source string) {
	s.Helper()
	bin, err := exec.Command("pg_config", "--bindir").Output()
	programs := strings.TrimSpace(string(bin))
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
		if len(found) == 0 {
			s.Skip("SKIPPED, NOT TESTED: no standby, there are no server programs here")
		}
		programs = found[len(found)-1]
	}
	if os.Geteuid() != 0 {
		s.Skip("SKIPPED, NOT TESTED: no standby, not root, which can become the user postgres")
	}
	dir, err := os.MkdirTemp("", "rowlock-standby-")
	s.OK(err)
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.OK(exec.Command("chown", "postgres", dir).Run())
	primary, err := url.Parse(s.Env.Source)
	s.OK(err)
	run := func(program string, args ...string) *exec.Cmd {
		return exec.Command("setpriv",
			append([]string{
				"--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig=KILL",
				filepath.Join(programs, program),
			}, args...)...)
	}
	if out, err := run("pg_basebackup", "-d", s.Env.Source, "-D", dir+"/data", "-c", "fast", "-X",
		"stream", "-R").CombinedOutput(); err != nil {
		s.Skipf("SKIPPED, NOT TESTED: no standby, pg_basebackup: %v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.OK(err)
	port := l.Addr().(*net.TCPAddr).Port
	s.OK(l.Close())
	args := []string{
		"-D", dir + "/data", "-p", fmt.Sprint(port), "-c", "unix_socket_directories=" + dir,
		"-c", "shared_buffers=16MB",
	}
	for _, limit := range []string{"max_connections", "max_prepared_transactions"} {
		n := s.Number(`SELECT current_setting('` + limit + `')::int`) // a standby has as many
		args = append(args, "-c", fmt.Sprint(limit, "=", n))
	}
	server := run("postgres", args...)
	s.OK(server.Start())
	s.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	primary.Host = fmt.Sprintf("127.0.0.1:%d", port)
	e := *s.Env
	e.Source = primary.String()
	db := e.Pool(s)
	s.Eventually("the standby to take connections",
		func() bool { return db.PingContext(s.Context()) == nil })
	return e.Source
}
