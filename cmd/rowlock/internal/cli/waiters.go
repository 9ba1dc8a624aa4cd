package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/scan"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/waitlist"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
)

func (p *program) waiters() *cobra.Command {
	var after string
	var limit int
	c := &cobra.Command{
		Use:   "waiters [KEY]",
		Short: "List which keys are waited for, or who waits for one",
		Long: long(`
Without KEY: the keys that are waited for. With KEY: who waits for it, and in which order.

KIND is queue for a waiter of a fair client, at its position; process for a process with waiters in
no order, that does not tell how many; caller for one that waits while it holds other keys. Its
process may be listed beside it.`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.waitersOf(c.Context(), args[0])
			}
			return p.waitedKeys(c.Context(), after, limit)
		},
	}
	c.Flags().StringVar(&after, "after", "", "go on after this key")
	c.Flags().IntVarP(&limit, "limit", "n", page, "keys to list")
	return p.listed(c)
}

// waiter is one in JSON; times are seconds.
type waiter struct {
	Position int      `json:"position,omitempty"`
	Kind     string   `json:"kind"`
	Identity string   `json:"identity,omitempty"`
	Note     string   `json:"note,omitempty"`
	Alive    *float64 `json:"alive_seconds,omitempty"`
	Waited   *float64 `json:"waited_seconds,omitempty"`
}

func waitersOf(all []waitlist.Waiter) []waiter {
	out := make([]waiter, len(all))
	for i, w := range all {
		out[i] = waiter{Kind: w.Kind, Identity: w.Identity, Note: w.Note}
		alive, waited := w.Alive.Seconds(), w.Waited.Seconds()
		if w.Kind == "queue" {
			out[i].Position = i + 1
		}
		if w.Kind == "caller" {
			out[i].Waited = &waited
		} else {
			out[i].Alive = &alive
		}
	}
	return out
}

func (p *program) waitersOf(ctx context.Context, text string) error {
	key, err := keytext.Read(text)
	if err != nil {
		return err
	}
	t, _, end, err := p.table(ctx)
	if err != nil {
		return err
	}
	defer end()
	found, err := waitlist.Of(t).Waiters(ctx, key)
	if err != nil {
		return err
	}
	if p.out.IsJSON() {
		return p.out.JSON(struct {
			Key     string   `json:"key"`
			Waiters []waiter `json:"waiters"`
		}{keytext.Show(key), waitersOf(found)})
	}
	if len(found) == 0 {
		fmt.Fprintf(p.stderr, "rowlock: no waiters for %s\n", keytext.Show(key))
		return nil
	}
	return p.printWaiters(found)
}

var waiterColumns = []listing.Column{
	{Name: "POS", Right: true},
	{Name: "KIND"},
	{Name: "WAITER", Least: 12},
	{Name: "NOTE", Least: 6, Rank: 2},
	{Name: "TIME", Rank: 1},
}

func (p *program) printWaiters(found []waitlist.Waiter) error {
	rows := make([][]string, len(found))
	for i, w := range found {
		rows[i] = []string{
			"-", w.Kind, listing.Plain(w.Identity), listing.Plain(w.Note),
			"heartbeat due in " + listing.Span(w.Alive),
		}
		if w.Kind == "queue" {
			rows[i][0] = strconv.Itoa(i + 1)
		}
		if w.Kind == "caller" {
			rows[i][4] = "waits for " + listing.Span(w.Waited)
		}
	}
	return p.out.Table(waiterColumns, rows)
}

// waitedKey is a key in JSON.
type waitedKey struct {
	Key       string  `json:"key"`
	Queued    int     `json:"queued"`
	Processes int     `json:"processes"`
	Holder    string  `json:"holder,omitempty"`
	Age       float64 `json:"age_seconds,omitempty"`
}

var waitedColumns = []listing.Column{
	{Name: "KEY", Least: 12},
	{Name: "QUEUED", Right: true},
	{Name: "PROCESSES", Right: true},
	{Name: "HOLDER", Least: 12, Rank: 1},
	{Name: "AGE", Right: true, Rank: 2},
}

func (p *program) waitedKeys(ctx context.Context, after string, limit int) error {
	from, err := keytext.Prefix(after)
	if err != nil {
		return err
	}
	if limit < 1 {
		return usage("--limit %d must be at least 1", limit)
	}
	t, table, end, err := p.table(ctx)
	if err != nil {
		return err
	}
	defer end()
	found, err := waitlist.Of(t).Keys(ctx, from, limit+1)
	if err != nil {
		return err
	}
	more := len(found) > limit
	found = found[:min(limit, len(found))]
	holders, err := holdersOf(ctx, table, found)
	if err != nil {
		return err
	}
	return p.printWaited(found, holders, more)
}

func (p *program) printWaited(
	found []waitlist.Key, holders map[string]lease.Record, more bool,
) error {
	keys, rows, next := []waitedKey{}, [][]string{}, ""
	for _, k := range found {
		next = keytext.Show(k.Key)
		one := waitedKey{Key: next, Queued: k.Queued, Processes: k.Processes}
		row := []string{next, strconv.Itoa(k.Queued), strconv.Itoa(k.Processes), "(free)", "-"}
		if h, ok := holders[k.Key]; ok {
			one.Holder, one.Age = h.Identity(), h.Age.Seconds()
			row[3], row[4] = listing.Plain(h.Identity()), listing.Span(h.Age)
		}
		keys, rows = append(keys, one), append(rows, row)
	}
	if !more {
		next = ""
	}
	switch {
	case p.out.IsJSON():
		return p.out.JSON(struct {
			Keys []waitedKey `json:"keys"`
			Next string      `json:"next,omitempty"`
		}{keys, next})
	case len(found) == 0:
		fmt.Fprintln(p.stderr, "rowlock: no key is waited for")
		return nil
	case more:
		defer fmt.Fprintf(p.stderr, "rowlock: there are more keys: rowlock waiters --after %s\n", quote(next))
	}
	return p.out.Table(waitedColumns, rows)
}

func holdersOf(
	ctx context.Context, in scan.Inspector, keys []waitlist.Key,
) (map[string]lease.Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	filter := lease.Filter{Held: true, Limit: len(keys)}
	for _, k := range keys {
		filter.Keys = append(filter.Keys, k.Key)
	}
	found, err := in.Inspect(ctx, filter)
	holders := make(map[string]lease.Record)
	for _, r := range found {
		holders[r.Key] = r
	}
	return holders, err
}
