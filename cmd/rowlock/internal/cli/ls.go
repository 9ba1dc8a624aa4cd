package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/spf13/cobra"
)

const (
	page  = 100  // what a person reads at once
	batch = 1000 // what one statement fetches
)

func (p *program) ls() *cobra.Command {
	var all bool
	var after string
	var limit int
	c := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List which keys are held, by whom, for how long",
		Long: long(`
List held keys in their order: those that begin with PREFIX, or all. A listing of more than --limit
keys ends with the command for the next page.

A key is shown with \x and two digits for each byte that does not print, and \\ for a backslash.
Type it in that form. LEFT is the time to the end of the lease, unless it is renewed.`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.list(c.Context(), atMostOne(args), after, limit, all)
		},
	}
	c.Flags().BoolVarP(&all, "all", "a", false, "free keys and rowlock's own too, as long as they have a row")
	c.Flags().StringVar(&after, "after", "", "go on after this key")
	c.Flags().IntVarP(&limit, "limit", "n", page, "keys to list; 0: all of them")
	return p.listed(c)
}

func (p *program) list(ctx context.Context, prefix, after string, limit int, all bool) error {
	filter := lease.Filter{Held: !all, Limit: limit}
	var err error
	if filter.Prefix, err = keytext.Prefix(prefix); err != nil {
		return err
	}
	if filter.After, err = keytext.Prefix(after); err != nil {
		return err
	}
	if limit < 0 {
		return usage("--limit %d is negative: write 0 for all keys", limit)
	}
	_, table, end, err := p.table(adapter.Reading(ctx))
	if err != nil {
		return err
	}
	defer end()
	if limit == 0 {
		return p.listAll(ctx, table, filter)
	}
	found, more, err := pageOf(ctx, table, filter)
	if err != nil {
		return err
	}
	return p.printPage(found, more, prefix, limit, all)
}

// pageOf returns at most f.Limit rows, and whether there are more. With Held it leaves rowlock's
// own keys out, unless the prefix is theirs.
func pageOf(ctx context.Context, table lease.Store, f lease.Filter) (
	page []lease.Record, more bool, err error,
) {
	own := !f.Held || strings.HasPrefix(f.Prefix, lease.Reserved)
	for limit := f.Limit; ; {
		f.Limit = min(batch-1, limit-len(page)) + 1
		found, err := table.Inspect(ctx, f)
		if err != nil {
			return nil, false, err
		}
		for _, r := range found {
			if own || !strings.HasPrefix(r.Key, lease.Reserved) {
				page = append(page, r)
			}
		}
		switch {
		case len(page) > limit:
			return page[:limit], true, nil
		case len(found) < f.Limit:
			return page, false, nil
		}
		f.After = found[len(found)-1].Key
	}
}

func (p *program) printPage(
	found []lease.Record, more bool, prefix string, limit int, all bool,
) error {
	next := ""
	if more {
		next = keytext.Show(found[len(found)-1].Key)
	}
	if p.out.IsJSON() {
		keys := make([]record, len(found))
		for i, r := range found {
			keys[i] = recordOf(r)
		}
		return p.out.JSON(struct {
			Keys []record `json:"keys"`
			Next string   `json:"next,omitempty"`
		}{keys, next})
	}
	if err := p.printTable(found); err != nil || !more {
		return err
	}
	command := "rowlock ls" + p.settings.Flags()
	if all {
		command += " --all"
	}
	if limit != page {
		command += fmt.Sprintf(" --limit %d", limit)
	}
	if prefix != "" {
		command += " " + shown.Quote(prefix)
	}
	fmt.Fprintf(p.stderr, "rowlock: there are more keys: %s --after %s\n", command, shown.Quote(next))
	return nil
}

func (p *program) printTable(found []lease.Record) error {
	if len(found) == 0 {
		fmt.Fprintln(p.stderr, "rowlock: no such keys")
		return nil
	}
	rows := make([][]string, len(found))
	for i, r := range found {
		rows[i] = recordRow(r)
	}
	return p.out.Table(recordColumns, rows)
}

// listAll prints pages as they come: in JSON, one object for each key and line.
func (p *program) listAll(ctx context.Context, table lease.Store, filter lease.Filter) error {
	for {
		filter.Limit = batch
		found, more, err := pageOf(ctx, table, filter)
		if err != nil {
			return err
		}
		if !p.out.IsJSON() {
			err = p.printTable(found)
		}
		for _, r := range found {
			if p.out.IsJSON() && err == nil {
				err = p.out.JSON(recordOf(r))
			}
		}
		if err != nil || !more {
			return err
		}
		filter.After = found[len(found)-1].Key
	}
}
