//go:build linux

package main

import (
	"io"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// screen is a terminal with a program in it.
type screen struct {
	*testing.T
	cmd  *exec.Cmd
	file io.ReadWriteCloser
	vt   vt10x.Terminal
	done chan struct{}

	mu  sync.Mutex
	raw strings.Builder
}

func (b *bed) screen(columns, rows int, cmd *exec.Cmd) *screen {
	b.Helper()
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})
	if err != nil {
		b.Fatal(err)
	}
	s := &screen{T: b.T, cmd: cmd, file: file, vt: vt10x.New(vt10x.WithSize(columns, rows)), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for buf := make([]byte, 4096); ; {
			n, err := file.Read(buf)
			s.mu.Lock()
			s.raw.Write(buf[:n])
			_, _ = s.vt.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	b.Cleanup(func() { _ = cmd.Process.Kill(); <-s.done; _ = file.Close() })
	return s
}

// shows waits until the screen has a text.
func (s *screen) shows(text string) {
	s.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.vt.String(), text); {
		if time.Now().After(end) {
			s.Fatalf("the screen does not show %q:\n%s", text, s.vt.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *screen) types(keys string) {
	s.Helper()
	if _, err := io.WriteString(s.file, keys); err != nil {
		s.Fatal(err)
	}
}

// ends waits for the program and returns its exit code and all that it wrote. It kills one that
// hangs.
func (s *screen) ends() (code int, raw string) {
	s.Helper()
	defer time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() }).Stop()
	_ = s.cmd.Wait()
	<-s.done
	return s.cmd.ProcessState.ExitCode(), s.raw.String()
}

func TestATableFitsItsTerminal(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.holds("short", strings.Repeat("long/", 20), "日本語のキー/"+strings.Repeat("日", 30))
	for _, columns := range []int{200, 80, 40, 20, 5} {
		code, raw := b.screen(columns, 50, b.command("ls")).ends()
		if code != 0 {
			t.Errorf("ls exits with %d: %s", code, raw)
		}
		for line := range strings.Lines(raw) {
			if w := ansi.StringWidth(strings.TrimRight(line, "\r\n")); w > columns {
				t.Errorf("%d columns where there are %d: %q", w, columns, line)
			}
		}
		if !strings.Contains(raw, "\x1b[") {
			t.Errorf("no color on a terminal: %q", raw)
		}
	}
	if out := b.wants(0, "", "ls"); strings.Contains(out, "\x1b") || strings.Contains(out, "…") {
		t.Errorf("in a pipe there are colors, or texts are cut: %q", out)
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		cmd := b.command("ls")
		cmd.Env = append(cmd.Env, env)
		if _, raw := b.screen(80, 24, cmd).ends(); strings.Contains(raw, "\x1b") {
			t.Errorf("with %s there is color: %q", env, raw)
		}
	}
}

func TestACommandHasTheTerminal(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	// exec, because a shell that is about to start a child when Ctrl-Z comes waits for it, stopped,
	// and is never seen as stopped itself.
	s := b.screen(80, 24, b.command("run", "k", "--", "sh", "-c", "read line; echo got $line; exec sleep 60"))
	s.types("hello\n")
	s.shows("got hello")
	s.types("\x1a") // Ctrl-Z: it goes on
	s.types("\x03")
	if code, raw := s.ends(); code != 128+int(syscall.SIGINT) {
		t.Errorf("after Ctrl-C run exits with %d, want 130: %q", code, raw)
	}
	b.wants(0, "", "run", "k", "--wait", "0", "--", "true") // the key is free
	b.wants(0, "", "show", "k")
}

// gate is a way to a server that can be closed, and opened again.
type gate struct {
	net.Listener
	to string

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// gate puts a gate before the server, and returns the bed behind it.
func (b *bed) gate() (*gate, *bed) {
	b.Helper()
	u, err := url.Parse(b.dsn)
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	g := &gate{Listener: l, to: u.Host}
	go g.serve()
	b.Cleanup(func() { _ = l.Close(); g.set(true) })
	u.Host = l.Addr().String()
	return g, &bed{b.T, b.Env, u.String()}
}

func (g *gate) serve() {
	for {
		in, err := g.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", g.to)
		g.mu.Lock()
		if g.closed || err != nil {
			_ = in.Close()
		} else {
			g.conns = append(g.conns, in, out)
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
		g.mu.Unlock()
	}
}

func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

func TestTopSaysThatTheDatabaseIsGoneAndComesBack(t *testing.T) {
	for _, k := range testdb.Servers {
		t.Run(k.Name, func(t *testing.T) {
			b := newBed(t, k.Open(t))
			b.holds("orders/42", "reports/1")
			g, behind := b.gate()
			s := b.screen(100, 24, behind.command("top", "--every", "100ms"))
			s.shows("orders/42")
			s.shows("2 held")
			s.shows("web-1/4711/orders")
			g.set(true)
			s.shows("gone for")
			s.shows("orders/42")
			g.set(false)
			eventually(t, "top to come back", func() bool { return !strings.Contains(s.vt.String(), "gone for") })
			s.types("/rep\r")
			s.shows("1 held")
			s.types("q")
			if code, raw := s.ends(); code != 0 {
				t.Errorf("after q top exits with %d: %s", code, raw)
			}
		})
	}
}

func TestARunWithoutItsDatabaseEndsTheCommandBeforeTheLease(t *testing.T) {
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		b := newBed(t, e)
		g, behind := b.gate()
		v := behind.victim("k")
		g.set(true)
		v.diesInTime("the database gone")
		_ = v.keeper.Wait()
		if code := v.keeper.ProcessState.ExitCode(); code != 121 {
			t.Errorf("run exits with %d, want 121", code)
		}
	})
}
