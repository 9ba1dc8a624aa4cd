package standby

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// product is what MariaDB and MySQL do differently. Each has its words for the same replication.
type product struct {
	name     string
	program  string
	user     string // that the server runs as: neither wants to be root
	prepare  []string
	options  []string
	join     string // with the port of the primary
	stop     string // reading the primary's log
	resume   string
	status   string
	position string // of the primary's log
	promote  string
	wait     string // has the primary's commits wait; a replica that waited would apply nothing
}

// Unlogged is a database that the primary's log leaves out.
const Unlogged = "rowlock_unlogged"

var products = map[string]*product{
	"mariadb": {
		name: "mariadb", program: "mariadbd", user: "nobody",
		prepare: []string{
			"mariadb-install-db", "--skip-name-resolve", "--skip-test-db",
			"--auth-root-authentication-method=normal", "--innodb-log-file-size=8M",
		},
		options: []string{
			"--rpl-semi-sync-slave-enabled=ON",
			"--rpl-semi-sync-master-timeout=86400000", "--innodb-log-file-size=8M",
			"--innodb-flush-method=nosync", "--gtid-strict-mode=ON",
		},
		join: `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %s, MASTER_USER = 'root',
			MASTER_USE_GTID = slave_pos; START SLAVE`,
		stop:     `STOP SLAVE IO_THREAD`,
		resume:   `START SLAVE IO_THREAD`,
		status:   `SHOW SLAVE STATUS`,
		position: `SHOW MASTER STATUS`,
		wait:     `SET GLOBAL rpl_semi_sync_master_enabled = ON`,
		promote:  `STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF`,
	},
	"mysql": {
		name: "mysql", program: "/usr/sbin/mysqld", user: "mysql",
		prepare: []string{
			"/usr/sbin/mysqld", "--no-defaults", "--initialize-insecure",
			"--innodb-redo-log-capacity=8M",
		},
		options: []string{
			"--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so",
			"--loose-rpl-semi-sync-replica-enabled=ON",
			"--loose-rpl-semi-sync-source-timeout=86400000", "--innodb-redo-log-capacity=8M",
			"--innodb-flush-method=nosync", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
			"--mysqlx=OFF",
		},
		join: `CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %s,
			SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1; START REPLICA`,
		stop:     `STOP REPLICA IO_THREAD`,
		resume:   `START REPLICA IO_THREAD`,
		status:   `SHOW REPLICA STATUS`,
		position: `SHOW BINARY LOG STATUS`,
		wait:     `SET GLOBAL rpl_semi_sync_source_enabled = ON`,
		promote:  `STOP REPLICA; RESET REPLICA ALL; SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF`,
	},
}

// innodb is a MariaDB or MySQL of the test's own.
type innodb struct {
	process
	*product

	root   string // of its programs: MySQL's have a Debian of their own
	folder string // as the server sees it
	number int
	on     string
	as     *syscall.Credential
	log    bytes.Buffer
}

func (s *innodb) path(parts ...string) string {
	return filepath.Join(append([]string{s.folder}, parts...)...)
}

func (s *innodb) data() string { return s.path(fmt.Sprint("data", s.number)) }

func (s *innodb) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot: s.root, Credential: s.as, Setsid: true, Pdeathsig: syscall.SIGKILL,
	}
	return cmd
}

func (s *innodb) initialize(tb testing.TB, options ...string) {
	tb.Helper()
	args := append(s.prepare[1:len(s.prepare):len(s.prepare)], "--datadir="+s.data(), "--tmpdir="+s.path())
	args = append(args, options...)
	if s.name == "mariadb" {
		args = append([]string{"--no-defaults"}, args...)
	}
	if out, err := s.command(s.prepare[0], args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", s.prepare[0], err, out)
	}
}

func (s *innodb) address(tb testing.TB) (host, port string) {
	tb.Helper()
	host, port, err := net.SplitHostPort(s.on)
	if err != nil {
		tb.Fatal(err)
	}
	return host, port
}

// start returns when the server answers. It ends with the test.
func (s *innodb) start(tb testing.TB, options ...string) {
	tb.Helper()
	tb.Cleanup(func() { s.kill(tb) })
	s.again(tb, options...)
}

// again is start for a server that has been started by it, and has ended.
func (s *innodb) again(tb testing.TB, options ...string) {
	tb.Helper()
	_, port := s.address(tb)
	n := strconv.Itoa(s.number)
	args := append([]string{
		"--no-defaults", "--datadir=" + s.data(), "--tmpdir=" + s.path(), "--socket=" + s.path("socket"+n),
		"--pid-file=" + s.path("pid"+n), "--init-file=" + s.path("init.sql"), "--bind-address=127.0.0.1",
		"--port=" + port, "--server-id=" + n, "--log-bin=" + s.path("bin"+n), "--skip-name-resolve",
		"--relay-log=" + s.path("relay"+n), "--innodb-buffer-pool-size=32M", "--sync-binlog=1",
		"--binlog-ignore-db=" + Unlogged,
	}, slices.Concat(s.options, options)...)
	s.cmd = s.command(s.program, args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.launch(tb)
	db := s.open(tb)
	until(tb, s.name+" answers", func() bool {
		select {
		case <-s.ended:
			tb.Fatalf("%s ended: %s", s.name, s.log.String())
		default:
		}
		return db.PingContext(tb.Context()) == nil
	})
}

func (s *innodb) dsn() string {
	return "root@tcp(" + s.on + ")/rowlock_test?multiStatements=true"
}

func (s *innodb) open(tb testing.TB) *sql.DB {
	tb.Helper()
	cfg, err := mysql.ParseDSN(s.dsn())
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	db := sql.OpenDB(connector)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// credential reads the user from the passwd of the server's own system.
func credential(tb testing.TB, root, name string) *syscall.Credential {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(root, "/etc/passwd"))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(line, ":")
		if fields[0] != name {
			continue
		}
		uid, errUID := strconv.ParseUint(fields[2], 10, 32)
		gid, errGID := strconv.ParseUint(fields[3], 10, 32)
		if errUID == nil && errGID == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	tb.Fatalf("there is no user %s in %s", name, root)
	return nil
}
