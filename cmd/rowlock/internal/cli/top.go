package cli

import (
	"context"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/top"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// screenful is how many held keys top reads: more than a person scrolls through.
const screenful = 1000

func (p *program) top() *cobra.Command {
	var every time.Duration
	c := &cobra.Command{
		Use:   "top [PREFIX]",
		Short: "Show held keys on a screen that refreshes",
		Long: long(`
Show held keys on a screen that refreshes: by whom, since when, the lease as a bar that drains until
it is renewed, and how many wait. Two statements for each refresh, of the first 1,000 held keys:
narrow with a prefix. When the database goes away it says so, and goes on when it is back.

Keys: q quit, s sort by key, age, time left or waiters, / prefix, arrows and page keys scroll.`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.screen(c.Context(), atMostOne(args), every)
		},
	}
	c.Flags().DurationVar(&every, "every", time.Second, "time between refreshes")
	return c
}

func (p *program) screen(ctx context.Context, prefix string, every time.Duration) error {
	if _, err := keytext.Prefix(prefix); err != nil {
		return err
	}
	if every < 100*time.Millisecond {
		return usage("top: --every %s must be at least 100ms", every)
	}
	if !term.IsTerminal(int(os.Stdout.Fd())) {
		return usage("top needs a terminal: in a pipe, use `rowlock ls -o json` or `rowlock watch`")
	}
	t, table, end, err := p.table(adapter.Reading(ctx))
	if err != nil {
		return err
	}
	defer end()
	waits := shownOf(t)
	return top.Run(ctx, t.Name, prefix, every, func(ctx context.Context, prefix string) (s top.Snapshot, err error) {
		filter := lease.Filter{Prefix: prefix, Held: true, Limit: screenful}
		if s.Held, s.More, err = pageOf(ctx, table, filter); err != nil {
			return s, err
		}
		s.Waited, err = waits.Waited(ctx, prefix, "", screenful)
		return s, err
	})
}
