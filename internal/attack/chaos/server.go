//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
	"github.com/rowlockdb/rowlock/internal/attack/proxy"
)

// engine is what differs between the databases' servers.
type engine struct {
	name, user string
	// prepare makes the data, and serve is the server's command line on a port.
	prepare  func(s *server) error
	serve    func(s *server) []string
	dsn      func(user, address string) string
	protocol func(late time.Duration) proxy.Protocol
	// chroot is the folder that the server's programs take for /, or "".
	chroot func() string
	// root may do everything, and setup are its first statements. Workers are the user app, for whom
	// no connections are reserved.
	root  string
	setup []string
	// sessions counts those of clients but for ours, and version names the server.
	sessions, version string
	replicas          replicas
	// urgent servers do not wait for a busy machine: a replica would take seconds to start.
	urgent bool
}

// urgency is a priority above the workers'.
const urgency = -5

var engines = map[string]*engine{"postgres": &postgres, "mariadb": &mariadb, "mysql": &mysql}

// server is one of the run's own. Its data are durable as they are by default.
type server struct {
	*engine
	folder string // as its programs see it
	port   string
	// settings are added to its command line, and variables to its environment, at the next start.
	settings  []string
	variables []string
	db        *sql.DB // the run's own questions and commands

	cmd   *exec.Cmd
	ended chan struct{}
}

// newServer prepares a server and starts it.
func newServer(ctx context.Context, e *engine, folder string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{engine: e, folder: folder, port: port}
	if err := s.makeFolder(); err != nil {
		return nil, err
	}
	if err := e.prepare(s); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

func (s *server) open(ctx context.Context) (err error) {
	if s.db, err = sql.Open(fight.Database{Name: s.name}.Driver(), s.dsn(s.root, s.address())); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(5)
	if err := s.start(ctx); err != nil {
		return err
	}
	return s.exec(ctx, s.setup...)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

func (s *server) address() string { return "127.0.0.1:" + s.port }

// makeFolder makes one that the server's user may write to.
func (s *server) makeFolder() error {
	path := s.outside(s.folder)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	c, err := s.identity()
	if c == nil || err != nil {
		return err
	}
	return os.Chown(path, int(c.Uid), int(c.Gid))
}

func (s *server) outside(path string) string { return filepath.Join("/", s.chroot(), path) }

func (s *server) remove() error { return os.RemoveAll(s.outside(s.folder)) }

// identity is the user that the server runs as: each refuses to be root.
func (s *server) identity() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	text, err := os.ReadFile(s.outside("/etc/passwd"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, ":")
		if f[0] != s.user || len(f) < 4 {
			continue
		}
		uid, one := strconv.ParseUint(f[2], 10, 32)
		gid, two := strconv.ParseUint(f[3], 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(one, two)
	}
	return nil, fmt.Errorf("there is no user %s: install the server as scripts/with-servers does", s.user)
}

func (s *server) command(line ...string) (*exec.Cmd, error) {
	c, err := s.identity()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), s.variables...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c, Setsid: true, Pdeathsig: syscall.SIGKILL, Chroot: s.chroot()}
	return cmd, nil
}

// run waits for a program of the server's.
func (s *server) run(line ...string) error {
	cmd, err := s.command(line...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line[0], err, out)
	}
	return nil
}

// startFor is how long a server may take to recover and answer.
const startFor = 90 * time.Second

// start returns when the server answers. After a kill it can find that its predecessor's processes
// are not all gone, and is then started again.
func (s *server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	for {
		if !s.runs() {
			if err := s.launch(); err != nil {
				return err
			}
		}
		one, stop := context.WithTimeout(ctx, 5*time.Second)
		err := s.db.PingContext(one)
		stop()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s has not answered in %s: %w: %s", s.name, startFor, err, s.lastLog())
		}
		fight.Sleep(ctx, 20*time.Millisecond)
	}
}

func (s *server) lastLog() string {
	text, _ := os.ReadFile(s.outside(s.log()))
	return string(text[max(0, len(text)-2000):])
}

func (s *server) log() string { return s.folder + ".log" }

func (s *server) runs() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// launch has a thread of its own start the server: the kernel kills it when that thread ends.
func (s *server) launch() error {
	cmd, err := s.command(append(s.serve(s), s.settings...)...)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.outside(s.log()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	ended, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		if err == nil && s.urgent {
			_ = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, urgency) // not root: then it is slower
		}
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	s.cmd, s.ended = cmd, ended
	return <-started
}

// signal sends to the server's processes, all of them.
func (s *server) signal(sig unix.Signal) {
	if !s.runs() {
		return
	}
	for _, pid := range append(fight.Children(s.cmd.Process.Pid), s.cmd.Process.Pid) {
		_ = unix.Kill(pid, sig) // a child may have gone
	}
}

// kill ends all of it at once, as a crash does.
func (s *server) kill() {
	if s.runs() {
		s.signal(unix.SIGKILL)
		<-s.ended
	}
}

// restart kills the server and starts it with its settings of now.
func (s *server) restart(ctx context.Context) error {
	s.kill()
	return s.start(ctx)
}

// end is the last of it.
func (s *server) end() error {
	s.kill()
	return errors.Join(s.db.Close(), s.remove(), os.Remove(s.outside(s.log())))
}

func (s *server) exec(ctx context.Context, statements ...string) error {
	for _, text := range statements {
		if _, err := s.db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func (s *server) ask(ctx context.Context, query string) (answer string) {
	if err := s.db.QueryRowContext(ctx, query).Scan(&answer); err != nil {
		return ""
	}
	return answer
}
