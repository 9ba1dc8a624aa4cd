package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/scan"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/waitlist"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/spf13/cobra"
)

func (p *program) waiters() *cobra.Command {
	var after string
	var limit int
	c := &cobra.Command{
		Use:   "waiters [KEY]",
		Short: "List which keys are waited for, or who waits for one",
		Long: long(`
Without KEY: the keys that are waited for. With KEY: who waits for it, and in which order.

KIND is queue for a waiter of a fair client, at its position. process is all else that waits by one
name, and counts for up to 10 s after its last call. TIME is for how long the oldest call has waited,
and CALLS how many there are, as far as it is known: only what holds other keys meanwhile, HOLDS,
tells that.`),
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
	Position  int      `json:"position,omitempty"`
	Kind      string   `json:"kind"`
	Identity  string   `json:"identity,omitempty"`
	Note      string   `json:"note,omitempty"`
	Processes int      `json:"processes,omitempty"`
	Calls     int      `json:"calls,omitempty"`
	Alive     float64  `json:"alive_seconds"`
	Waited    float64  `json:"waited_seconds,omitempty"`
	Holds     []string `json:"holds,omitempty"`
}

func waitersOf(all []shown.Waiter) []waiter {
	out := make([]waiter, len(all))
	for i, w := range all {
		out[i] = waiter{
			Kind: "process", Identity: w.Identity, Note: w.Note, Processes: w.Processes, Calls: w.Calls,
			Alive: w.Alive.Seconds(), Waited: w.Waited.Seconds(),
		}
		if w.Queued {
			out[i].Kind, out[i].Position = "queue", i+1
		}
		for _, key := range w.Holds {
			out[i].Holds = append(out[i].Holds, keytext.Show(key))
		}
	}
	return out
}

// mostWaiters bounds what is read of one key.
const mostWaiters = 10_000

func waitersFor(ctx context.Context, t *target.Target, key string) ([]shown.Waiter, error) {
	found, err := shown.Of(t.DB, sqlstore.Of(t.Dialect), "").Waiters(ctx, key, mostWaiters)
	return found.All, err
}

func (p *program) waitersOf(ctx context.Context, text string) error {
	key, err := keytext.Read(text)
	if err != nil {
		return err
	}
	t, _, end, err := p.table(adapter.Reading(ctx))
	if err != nil {
		return err
	}
	defer end()
	found, err := waitersFor(ctx, t, key)
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
	{Name: "WAITER", Least: 16},
	{Name: "NOTE", Least: 10, Rank: 4},
	{Name: "TIME", Rank: 2},
	{Name: "CALLS", Right: true, Rank: 3},
	{Name: "HOLDS", Least: 8, Rank: 1},
}

func (p *program) printWaiters(found []shown.Waiter) error {
	rows := make([][]string, len(found))
	for i, w := range waitersOf(found) {
		kind, calls, time := w.Kind, "-", "heartbeat due in "+listing.Span(found[i].Alive)
		if w.Processes > 1 {
			kind = strconv.Itoa(w.Processes) + " processes"
		}
		if w.Calls > 0 {
			calls = strconv.Itoa(w.Calls)
		}
		if w.Waited > 0 {
			time = "waits for " + listing.Span(found[i].Waited)
		}
		rows[i] = []string{
			"-", kind, cmp.Or(listing.Plain(w.Identity), "(no name)"), listing.Plain(w.Note), time, calls,
			cmp.Or(strings.Join(w.Holds, " "), "-"),
		}
		if w.Position > 0 {
			rows[i][0] = strconv.Itoa(w.Position)
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
	{Name: "KEY", Least: 24},
	{Name: "QUEUED", Right: true},
	{Name: "PROCESSES", Right: true},
	{Name: "HOLDER", Least: 16, Rank: 1},
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
	t, table, end, err := p.table(adapter.Reading(ctx))
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

func (p *program) printWaited(found []waitlist.Key, holders map[string]lease.Record, more bool) error {
	keys, rows, next := []waitedKey{}, [][]string{}, ""
	for _, k := range found {
		next = keytext.Show(k.Key)
		one := waitedKey{Key: next, Queued: k.Queued, Processes: k.Processes}
		row := []string{next, strconv.Itoa(k.Queued), strconv.Itoa(k.Processes), "(not held)", "-"}
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
