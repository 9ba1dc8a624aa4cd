//go:build unix

package supervise

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the terminal that the command is in the foreground of, if there is one.
type terminal struct {
	file  int
	owner int // the group that had it before
}

const stdin = 0

// openTerminal has the command start in the foreground of the terminal, if the keeper is there. A
// command in the background could not read from it.
func openTerminal(attr *syscall.SysProcAttr) *terminal {
	owner, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP)
	keeper, other := unix.Getpgid(unix.Getppid())
	if err != nil || other != nil || owner != keeper {
		return nil
	}
	attr.Foreground, attr.Ctty = true, stdin
	return &terminal{file: stdin, owner: owner}
}

// takeBack gives the terminal back. It is called after the command, which would inherit that the
// signal is ignored. The kernel would stop a process of the background for it otherwise.
func (t *terminal) takeBack() {
	if t == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.file, unix.TIOCSPGRP, t.owner)
}
