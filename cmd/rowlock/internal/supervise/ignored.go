//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"syscall"
)

// Passed are the signals that the command gets.
var Passed = []os.Signal{
	os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// Heeded returns the signals of all that were not ignored when the process started. To be notified
// of one that was would undo nohup, for the command too. Call it before any signal.Notify.
//
// Go tells only of SIGHUP, SIGINT and those that stop a process: its runtime sets a handler for the
// others before any code of ours runs. A shell without job control ignores SIGINT and SIGQUIT
// together, for its background jobs, so that SIGQUIT is taken for ignored where SIGINT is.
func Heeded(all ...os.Signal) []os.Signal {
	var heeded []os.Signal
	for _, s := range all {
		switch {
		case s == syscall.SIGQUIT && signal.Ignored(syscall.SIGINT):
			signal.Ignore(s) // for the command too, which inherits it
		case !signal.Ignored(s) && !stillIgnored(s):
			heeded = append(heeded, s)
		}
	}
	return heeded
}
