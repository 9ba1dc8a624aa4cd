//go:build unix

package main

import (
	"fmt"
	"syscall"
)

const canStop = true

// stop halts the process where it stands, as a busy machine, a debugger or a migrating virtual
// machine may, and returns when it has halted.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err == nil && !status.Stopped():
			err = fmt.Errorf("process %d ended instead of stopping", p.cmd.Process.Pid)
		}
		return err
	}
}

// wake lets it go on. It cannot tell that it was stopped, but by looking at a clock.
func (p *process) wake() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
