//go:build unix

package supervise

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the terminal of the keeper, if it has one.
type terminal struct {
	keeper int  // its group
	given  bool // the command's group has the terminal
}

const stdin = 0

// openTerminal has the command start in the foreground of the terminal, if the keeper is there. A
// command in the background could not read from it.
func openTerminal(attr *syscall.SysProcAttr) *terminal {
	keeper, err := unix.Getpgid(unix.Getppid())
	if err != nil {
		return &terminal{}
	}
	t := &terminal{keeper: keeper}
	if t.isKeepers() {
		t.given = true
		attr.Foreground, attr.Ctty = true, stdin
	}
	return t
}

// isKeepers reports whether the keeper is in the foreground, as its shell's fg puts it there.
func (t *terminal) isKeepers() bool {
	owner, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP)
	return err == nil && owner == t.keeper
}

// handOver gives a command of the background the terminal once the keeper has it. No event tells.
func (t *terminal) handOver(group int) bool {
	if !t.isKeepers() {
		return false
	}
	t.given = true
	return t.give(group)
}

// takeBack gives the terminal back to the keeper.
func (t *terminal) takeBack() {
	if t.given {
		t.give(t.keeper)
	}
}

// give is called after the command was started, which would inherit that the signal is ignored. The
// kernel would stop a process of the background for it otherwise.
func (t *terminal) give(group int) bool {
	signal.Ignore(syscall.SIGTTOU)
	return unix.IoctlSetPointerInt(stdin, unix.TIOCSPGRP, group) == nil
}
