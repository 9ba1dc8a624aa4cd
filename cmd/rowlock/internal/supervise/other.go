//go:build !unix

package supervise

import (
	"errors"
	"os"
	"time"
)

// Argument makes a program of this package's user the warden.
const Argument = "__warden"

// ErrWarden says that the warden was ended before the command.
var ErrWarden = errors.New("rowlock: run: the supervising process has ended")

// Command is a command under a warden.
type Command struct{}

// Start refuses: a group of processes cannot be ended here as it must be.
func Start(_, _ []string, _ time.Time, _ time.Duration) (*Command, error) {
	return nil, errors.ErrUnsupported
}

// Warden is not to be called.
func Warden([]string) int { return 2 }

// Extend does nothing.
func (*Command) Extend(time.Time) {}

// Signal does nothing.
func (*Command) Signal(os.Signal) {}

// Stop does nothing.
func (*Command) Stop() {}

// Asks tells nothing.
func (*Command) Asks() <-chan struct{} { return nil }

// Passed end a program here.
var Passed = []os.Signal{os.Interrupt}

// Heeded returns the signals.
func Heeded(all ...os.Signal) []os.Signal { return all }

// ReapOrphans does nothing.
func ReapOrphans() {}

// Ended is never closed.
func (*Command) Ended() <-chan struct{} { return nil }

// Result is nothing.
func (*Command) Result() (End, error) { return End{}, nil }
