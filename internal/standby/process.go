package standby

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// process is a server's: nil or one that was launched and not killed.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// launch has a goroutine with a thread of its own start the server and wait for it: it is told to
// end when that thread does.
func (p *process) launch(tb testing.TB) {
	tb.Helper()
	cmd, ended, started := p.cmd, make(chan struct{}), make(chan error)
	p.ended = ended
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

// signal sends to the server and its children, which are in sessions of their own.
func (p *process) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	for _, pid := range append(p.children(tb), p.cmd.Process.Pid) {
		_ = syscall.Kill(pid, sig) // a child may have gone
	}
}

func (p *process) children(tb testing.TB) (pids []int) {
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
		if _, err := fmt.Sscan(string(fields), &state, &parent); err != nil || parent != p.cmd.Process.Pid {
			continue
		}
		if _, err := fmt.Sscan(string(text), &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill ends all of it at once. It is no error if it has ended.
func (p *process) kill(tb testing.TB) {
	tb.Helper()
	p.end(tb, syscall.SIGKILL)
}

// end ends all of it by a signal. It is no error if it has ended.
func (p *process) end(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if p.cmd == nil {
		return
	}
	p.signal(tb, sig)
	<-p.ended
	p.cmd = nil
}
