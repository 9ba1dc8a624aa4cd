package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/spf13/cobra"
)

func (p *program) show() *cobra.Command {
	return p.listed(&cobra.Command{
		Use:   "show KEY",
		Short: "Show all about one key, and who waits for it",
		Long: long(`
Show the row of a key: holder, token, owner, how long the lease has left, and who waits for it.
A key that was never locked, or that was swept since, has no row: the exit code is then 1.`),
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return p.showKey(c.Context(), args[0]) },
	})
}

func (p *program) showKey(ctx context.Context, text string) error {
	key, err := keytext.Read(text)
	if err != nil {
		return err
	}
	t, table, end, err := p.table(adapter.Reading(ctx))
	if err != nil {
		return err
	}
	defer end()
	found, err := table.Inspect(ctx, lease.Filter{Keys: []string{key}})
	if err != nil {
		return err
	}
	waiters, err := waitersFor(ctx, t, key)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &exitError{exitMissing, fmt.Errorf("key %s has no row: it is free", keytext.Show(key))}
	}
	if p.out.IsJSON() {
		return p.out.JSON(struct {
			record
			Waiters []waiter `json:"waiters"`
		}{recordOf(found[0]), waitersOf(waiters)})
	}
	expired := ""
	if r := found[0]; !r.Held && !r.Owner.IsZero() {
		expired = shown.WhoLocks(ctx, table, r.Key, p.settings.Flags())
	}
	p.print(found[0], expired)
	if len(waiters) == 0 {
		p.out.Line("waiters  none")
		return nil
	}
	p.out.Line("")
	return p.printWaiters(waiters)
}

func (p *program) print(r lease.Record, expired string) {
	identity, note := lease.SplitNote(r.Note)
	state := "held"
	switch {
	case r.Err != nil:
		state = "corrupt: " + listing.Plain(r.Err.Error())
	case r.Placement != lease.PlacementTable:
		state = "moved to the " + shown.Placement(r.Placement)
	case r.Owner.IsZero():
		state = "free"
	case !r.Held:
		state = "expired " + listing.Span(-r.Remaining) + " ago: " + expired
	case r.Shared:
		state = "shared by " + strconv.Itoa(r.Members)
	}
	p.out.Line("key      %s", keytext.Show(r.Key))
	p.out.Line("state    %s", state)
	if !r.Owner.IsZero() {
		p.out.Line("holder   %s", listing.Plain(identity))
		p.out.Line("note     %s", listing.Plain(note))
		p.out.Line("owner    %s", r.Owner)
	}
	p.out.Line("token    %d", r.Token)
	if r.Err != nil {
		p.out.Line("repair   rowlock release%s %s --force --reason TEXT", p.settings.Flags(),
			shown.Quote(keytext.Show(r.Key)))
		return
	}
	p.out.Line("granted  %s ago", listing.Span(r.Age))
	if r.Held {
		p.out.Line("left     %s unless renewed", listing.Span(r.Remaining))
	}
}
