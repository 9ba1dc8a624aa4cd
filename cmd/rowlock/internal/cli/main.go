// Package cli is the commands of rowlock, their flags and their exit codes.
package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/supervise"
	"github.com/spf13/cobra"
)

//go:embed help.txt
var help string

// Main runs rowlock with arguments and returns the exit code.
func Main(args []string) int {
	p := &program{out: new(listing.Output), stderr: os.Stderr, heeded: supervise.Heeded(supervise.Passed...)}
	supervise.ReapOrphans()
	root := p.root()
	root.SetArgs(args)
	ctx, stop := notified(p.heeded)
	defer stop()
	err := root.ExecuteContext(ctx)
	switch {
	case p.out.Err != nil:
		err = &exitError{exitOther, fmt.Errorf("print: %w", p.out.Err)}
	case err == nil:
		return 0
	case !p.began && exitCode(err) == exitOther:
		err = usage("%w: see `rowlock help`", err)
	}
	var own *exitError
	if !errors.As(err, &own) || own.err != nil {
		fmt.Fprintln(p.stderr, oneLine(err))
	}
	return exitCode(err)
}

// notified returns a context that the usual signals end, but for those that are ignored.
func notified(heeded []os.Signal) (context.Context, context.CancelFunc) {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	ends := slices.DeleteFunc(all, func(s os.Signal) bool { return !slices.Contains(heeded, s) })
	if len(ends) == 0 { // NotifyContext would take it for all signals
		return context.WithCancel(context.Background())
	}
	return signal.NotifyContext(context.Background(), ends...)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "rowlock",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			p.began = true
			return p.out.Open(os.Stdout, p.format)
		},
	}
	_ = p.out.Open(os.Stdout, "") // for help, before which nothing runs
	root.SetOut(p.out)
	usual := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c == root {
			fmt.Fprint(c.OutOrStdout(), help)
			return
		}
		usual(c, args)
	})
	flags := root.PersistentFlags()
	flags.StringVar(&p.settings.DSN, "dsn", os.Getenv("ROWLOCK_DSN"),
		"the database: postgres://…, mysql://… or sqlite:FILE (ROWLOCK_DSN)")
	flags.Lookup("dsn").DefValue = "" // it may have a password
	flags.StringVar(&p.settings.Prefix, "prefix", os.Getenv("ROWLOCK_PREFIX"),
		"prefix of the tables' names (ROWLOCK_PREFIX)")
	flags.StringVar(&p.settings.Schema, "schema", os.Getenv("ROWLOCK_SCHEMA"),
		"schema or database of the tables (ROWLOCK_SCHEMA)")
	flags.BoolVar(&p.settings.Pooled, "pooled", false,
		"PostgreSQL is behind PgBouncer in transaction mode")
	flags.BoolVar(&p.settings.RequireTLS, "require-tls", false, "refuse to connect to another host without TLS")
	flags.BoolVarP(&p.verbose, "verbose", "v", false, "print the library's warnings too")
	root.AddCommand(p.run(), p.fence(), p.ls(), p.show(), p.waiters(), p.top(), p.watch(),
		p.release(), p.move(), p.recall(), p.history(), p.console(), p.doctor(), p.migrate(), p.uninstall(),
		p.protect(), p.unprotect(), p.bench(), p.version())
	root.InitDefaultHelpCmd()
	if c, _, err := root.Find([]string{"help"}); err == nil { // which says 0 of an unknown command
		c.Run, c.RunE = nil, helpOn
	}
	return root
}

func helpOn(c *cobra.Command, args []string) error {
	found, rest, err := c.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown command %q for %q", rest[0], found.CommandPath())
	}
	if err != nil {
		return usage("%w: see `rowlock help`", err)
	}
	return found.Help()
}
