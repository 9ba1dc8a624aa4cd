// Package command is what the main functions of the examples have in common: flags, signals, and
// what the shell is told at the end.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/mattn/go-isatty"
)

// ErrLeft is told even after an interrupt, which otherwise says enough.
var ErrLeft = errors.New("something was left behind")

// Main is the whole life of a program: it parses its flags, has check look at them, and runs it. It
// does not return. When the program is interrupted or told to end, run's context ends, and run
// cleans up. The flags are of flag.ExitOnError.
func Main(flags *flag.FlagSet, check func() error, run func(context.Context) error) {
	_ = flags.Parse(os.Args[1:]) // -h and a flag that is none end the program
	if err := wrong(flags, check); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", flags.Name(), err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE) // piped into head, we must still come to the clean-up
	context.AfterFunc(ctx, stop)   // a second Ctrl-C need not wait for the clean-up
	os.Exit(status(ctx, flags.Name(), run(ctx), os.Stderr))
}

func wrong(flags *flag.FlagSet, check func() error) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag, and there are no other arguments; see -h", flags.Arg(0))
	}
	return check()
}

// status says what went wrong and returns the exit status: 130 is the shell's for an interrupted
// program. A program that was to run until it is interrupted, and has ended well, is not wrong.
func status(ctx context.Context, name string, err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case ctx.Err() == nil:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	fmt.Fprintf(stderr, "%s: interrupted\n", name)
	if errors.Is(err, ErrLeft) {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	return 130
}

// IsTerminal reports whether out is a terminal on which lines can be drawn over.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows"
}
