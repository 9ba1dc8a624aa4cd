package servertest

import (
	"bufio"
	"database/sql/driver"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Child is another process: this very program, doing one job on the scene's tables. The test
// sends it lines, and it answers in lines.
type Child struct {
	s   *Scene
	Cmd *exec.Cmd
	In  io.WriteCloser
	out *bufio.Scanner
}

// Child starts a child for a job on a table, whose leases have a TTL.
func (s *Scene) Child(job, table string, ttl time.Duration) *Child {
	s.Helper()
	return s.ChildIn(Mode{}, job, table, ttl)
}

// ChildIn starts a child whose client waits in a mode.
func (s *Scene) ChildIn(m Mode, job, table string, ttl time.Duration) *Child {
	s.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildAtWork$")
	what := []string{
		job, s.Env.Name, s.Env.Dialect.Names().Prefix, table, ttl.String(), s.Env.Source, m.String(),
	}
	cmd.Env = append(os.Environ(), "ROWLOCK_CHILD="+strings.Join(what, "\n"))
	in, err := cmd.StdinPipe()
	s.OK(err)
	out, err := cmd.StdoutPipe()
	s.OK(err)
	cmd.Stderr = os.Stderr
	s.OK(cmd.Start())
	c := &Child{s, cmd, in, bufio.NewScanner(out)}
	s.Cleanup(c.Kill)
	return c
}

// Send sends the child a line.
func (c *Child) Send(line string) {
	c.s.Helper()
	if _, err := fmt.Fprintln(c.In, line); err != nil {
		c.s.Errorf("the child is gone: %v", err)
	}
}

// Receive returns the child's next line.
func (c *Child) Receive() string {
	for c.out.Scan() {
		if said, ok := strings.CutPrefix(c.out.Text(), "child: "); ok {
			return said
		}
	}
	return "(nothing more)"
}

// Expect fails the test unless the child's next line is what.
func (c *Child) Expect(what string) {
	c.s.Helper()
	if said := c.Receive(); said != what {
		c.s.Errorf("the child said %q, want %q", said, what)
	}
}

// Pause stops the process as a virtual machine or a debugger does, and returns when it stands
// still. On SQLite it may stand in the middle of a write that the test knows nothing of, with the
// file locked for every other process: then it goes on for a moment, unless its transaction is as
// long as the test's.
func (c *Child) Pause() {
	c.s.Helper()
	c.stop()
	for long := time.Now().Add(2 * time.Second); !c.s.writable() && time.Now().Before(long); {
		c.Resume()
		time.Sleep(time.Millisecond)
		c.stop()
	}
}

func (c *Child) stop() {
	c.s.Helper()
	c.s.OK(c.Cmd.Process.Signal(syscall.SIGSTOP))
	c.s.Eventually("the process to stand", func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Cmd.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		if strings.HasPrefix(state, "Z") {
			c.s.Fatal("the process has ended by itself: its standard error says why")
		}
		return strings.HasPrefix(state, "T")
	})
}

// writable reports whether another process may write: on servers always, in SQLite's file when no
// transaction that writes is open.
func (s *Scene) writable() bool {
	if s.Env.Name != "sqlite" {
		return true
	}
	s.Helper()
	pinned, err := s.Env.DB.Conn(s.Context())
	s.OK(err)
	defer pinned.Close()
	// Its settings are not the pool's.
	defer func() { _ = pinned.Raw(func(any) error { return driver.ErrBadConn }) }()
	_, err = pinned.ExecContext(s.Context(), `PRAGMA busy_timeout = 0`)
	s.OK(err)
	_, err = pinned.ExecContext(s.Context(), `BEGIN IMMEDIATE`)
	return err == nil
}

// Resume lets a paused process go on.
func (c *Child) Resume() { c.s.OK(c.Cmd.Process.Signal(syscall.SIGCONT)) }

// Kill ends the process at once.
func (c *Child) Kill() {
	_ = c.Cmd.Process.Kill()
	_ = c.Cmd.Wait()
}

// Finish lets the child end by itself.
func (c *Child) Finish() {
	c.s.Helper()
	_ = c.In.Close()
	c.Expect("done")
	c.s.OK(c.Cmd.Wait())
}
