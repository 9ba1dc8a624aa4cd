package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/spf13/cobra"
)

// runFlags are those of run.
type runFlags struct {
	skip, fair, keepDSN            bool
	wait, ttl, grace, least, limit time.Duration
	note, identity, report         string
}

func (p *program) run() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run KEY [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command while it holds a lock",
		Long: `Run a command while it holds the lock KEY. The command gets ROWLOCK_KEY, ROWLOCK_TOKEN,
ROWLOCK_OWNER and what rowlock fence needs besides, but not ROWLOCK_DSN: see --keep-dsn. Signals
are passed on to it, but for those that were ignored when run started (nohup).

If the lease cannot be renewed, because the database is gone or another owner has the key, the
command's process group is sent SIGTERM, and --grace later SIGKILL, before the lease ends. That
happens too if rowlock run itself is stopped or killed. Processes that a command has left behind in
its group are ended before the lock is released.

Exit codes: that of the command; 128+n if signal n ended it; 126 if it cannot be run, 127 if there
is no such program. Of run itself: 120 another owner had the key (0 with --skip-if-held) · 121 the
lease was lost and the command ended · 122 the same at --max-hold · 123 the supervising process was
killed, and the command with it · 125 nothing was run: wrong usage, or the database refused. With
each of these a line on standard error begins with "rowlock:". --report FILE tells without doubt.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 || c.ArgsLenAtDash() != 1 {
				return runError(errors.New("run: write rowlock run KEY -- COMMAND"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return p.runCommand(c.Context(), args[0], args[1:], f)
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return runError(err) })
	flags := c.Flags()
	flags.BoolVar(&f.skip, "skip-if-held", false, "if another owner has the key, do nothing and exit with 0")
	flags.DurationVar(&f.wait, "wait", -1, "wait so long for the key; 0: not at all (default: for ever)")
	flags.DurationVar(&f.ttl, "ttl", 30*time.Second, "how long the key stays locked after a crash")
	flags.DurationVar(&f.grace, "grace", 0, "time between SIGTERM and SIGKILL (default: TTL/6, at most 10s)")
	flags.DurationVar(&f.least, "min-hold", 0, "keep the key locked so long after it was granted, unless the command fails")
	flags.DurationVar(&f.limit, "max-hold", 0, "end the command after so long")
	flags.StringVar(&f.note, "note", "", "shown to others (default: the name of the command)")
	flags.StringVar(&f.identity, "identity", "", "shown as the holder (default: host/pid/program)")
	flags.BoolVar(&f.fair, "fair", false, "wait in the queue of fair clients")
	flags.BoolVar(&f.keepDSN, "keep-dsn", false, "leave ROWLOCK_DSN, which may have a password, to the command")
	flags.StringVar(&f.report, "report", "", "write the outcome to this file, in JSON")
	return c
}

// check refuses flags that make no sense, and fills in defaults.
func (f *runFlags) check(command []string) error {
	if f.grace == 0 {
		f.grace = min(f.ttl/6, 10*time.Second)
	}
	switch {
	case f.ttl <= 0: // the command is told of it, and a fence extends the lease by it
		return usage("run: --ttl %s must be more than 0: leave it out for the default", f.ttl)
	case f.skip && f.wait > 0:
		return usage("run: --skip-if-held does not wait: leave out --wait %s", f.wait)
	case f.grace < 0 || f.grace > f.ttl/3:
		return usage("run: --grace %s must be at most a third of --ttl %s, so that a renewal that "+
			"fails once is no reason to end the command", f.grace, f.ttl)
	case f.wait < -1 || min(f.least, f.limit) < 0: // a script may have computed what is left
		return usage("run: --wait, --min-hold and --max-hold must be 0 or more: leave out what has no bound")
	case f.limit > 0 && f.limit <= f.grace:
		return usage("run: --max-hold %s must be more than --grace %s", f.limit, f.grace)
	}
	if f.note == "" {
		// No arguments, which may have a password in them. A file may have a name that is no text.
		f.note = strings.ToValidUTF8(filepath.Base(command[0]), "?")
	}
	if _, err := exec.LookPath(command[0]); err != nil && !errors.Is(err, exec.ErrDot) {
		code := 127 // as a shell exits
		if errors.Is(err, os.ErrPermission) {
			code = 126
		}
		return &exitError{code, err}
	}
	return nil
}

func (p *program) runCommand(ctx context.Context, text string, command []string, f runFlags) error {
	// Go ends a program whose standard error has lost its reader, as head: a key would stay locked.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	key, err := keytext.Read(text)
	if err == nil {
		err = f.check(command)
	}
	r := &runner{program: p, flags: f, key: key, command: command}
	if err = runError(err); err == nil {
		err = r.run(ctx)
	}
	if f.report != "" {
		if failed := r.writeReport(err); failed != nil {
			fmt.Fprintln(p.stderr, oneLine(failed))
		}
	}
	return err
}

// runError gives an error that run fails with before the command has begun its exit code.
func runError(err error) error {
	var own *exitError
	if err == nil || errors.As(err, &own) && own.code != exitUsage {
		return err
	}
	return &exitError{exitRun, err}
}
