package standby

import (
	"bytes"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// server is a PostgreSQL of the test's own.
type server struct {
	process

	programs, data, address string
}

// identity is the user that a server runs as: it refuses to be root.
func identity(tb testing.TB) *syscall.Credential {
	tb.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		tb.Fatal(err)
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	if errUID != nil || errGID != nil {
		tb.Fatalf("the user postgres is %+v", u)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *server) command(tb testing.TB, program string, args ...string) *exec.Cmd {
	tb.Helper()
	cmd := exec.Command(filepath.Join(s.programs, program), args...)
	cmd.Dir = filepath.Dir(s.data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: identity(tb), Setsid: true, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

func (s *server) run(tb testing.TB, program string, args ...string) {
	tb.Helper()
	if out, err := s.command(tb, program, args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", program, err, out)
	}
}

func (s *server) dsn() string {
	return "postgres://postgres@" + s.address + "/postgres?sslmode=disable"
}

// start returns when the server answers. It ends with the test.
func (s *server) start(tb testing.TB, settings ...string) {
	tb.Helper()
	tb.Cleanup(func() { s.kill(tb) })
	s.again(tb, settings...)
}

// again is start for a server that has been started by it, and has ended.
func (s *server) again(tb testing.TB, settings ...string) {
	tb.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		tb.Fatal(err)
	}
	args := append([]string{"-D", s.data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + filepath.Dir(s.data)}, settings...)
	var log bytes.Buffer
	db := s.open(tb)
	p := &Pair{}
	p.until(tb, "the server answers", func() bool {
		if s.cmd == nil { // after a kill it may find that its predecessor's children are not all gone
			log.Reset()
			s.cmd = s.command(tb, "postgres", args...)
			s.cmd.Stdout, s.cmd.Stderr = &log, &log
			s.launch(tb)
		}
		select {
		case <-s.ended:
			tb.Log(log.String())
			s.cmd = nil
			return false
		default:
			return s.answers(tb.Context(), db)
		}
	})
}

// promote returns when the server takes writes. pg_promote can wait for that itself, but what the
// server replays meanwhile may conflict with its snapshot, and cancel it.
func (s *server) promote(tb testing.TB) {
	tb.Helper()
	db := s.open(tb)
	if _, err := db.ExecContext(tb.Context(), `SELECT pg_promote(false)`); err != nil {
		tb.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		standby := true
		err := db.QueryRowContext(tb.Context(), `SELECT pg_is_in_recovery()`).Scan(&standby)
		if err == nil && !standby {
			return
		}
		if time.Since(began) > time.Minute {
			tb.Fatalf("a standby is not promoted (%v)", err)
		}
	}
}

func (s *server) open(tb testing.TB) *sql.DB {
	tb.Helper()
	db, err := sql.Open("pgx", s.dsn())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}
