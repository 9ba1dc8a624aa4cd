package standby

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// server is a PostgreSQL of the test's own.
type server struct {
	programs, data, address string

	cmd   *exec.Cmd
	ended chan struct{}
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

// start returns when the server answers.
func (s *server) start(tb testing.TB, settings ...string) {
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
	tb.Cleanup(func() { s.kill(tb) })
}

// launch has a goroutine with a thread of its own start the server and wait for it: it is told to end when that thread does.
func (s *server) launch(tb testing.TB) {
	tb.Helper()
	cmd, ended, started := s.cmd, make(chan struct{}), make(chan error)
	s.ended = ended
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		tb.Fatal(err)
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

// signal sends to the server and its children, which are in sessions of their own.
func (s *server) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	for _, pid := range append(s.children(tb), s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, sig) // a child may have gone
	}
}

func (s *server) children(tb testing.TB) (pids []int) {
	tb.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		var pid, parent int
		var state string
		fields := text[bytes.LastIndexByte(text, ')')+1:]
		if _, err := fmt.Sscan(string(fields), &state, &parent); err != nil || parent != s.cmd.Process.Pid {
			continue
		}
		if _, err := fmt.Sscan(string(text), &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill ends all of it at once. It is no error if it has ended.
func (s *server) kill(tb testing.TB) {
	tb.Helper()
	if s.cmd == nil {
		return
	}
	s.signal(tb, syscall.SIGKILL)
	<-s.ended
	s.cmd = nil
}
