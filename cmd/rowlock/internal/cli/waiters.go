package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/spf13/cobra"
)

func (p *program) waiters() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "waiters [KEY]",
		Short: "List which keys are waited for, or who waits for one",
		Long: long(`
Without KEY: the keys that are waited for, those with the most waiters first. With KEY: who waits for
it, and in which order.

KIND is queue for a waiter of a fair client, at its position. process is all else that waits by one
name, and counts for up to 10 s after its last call. TIME is for how long the oldest call has waited,
and CALLS how many there are, as far as it is known: only what holds other keys meanwhile, HOLDS,
tells that.`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.waitersOf(c.Context(), args[0])
			}
			return p.waitedKeys(c.Context(), limit)
		},
	}
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

func shownOf(t *target.Target) *shown.Tables { return shown.Of(t.DB, sqlstore.Of(t.Dialect), "") }

func waitersFor(ctx context.Context, t *target.Target, key string) ([]shown.Waiter, error) {
	found, err := shownOf(t).Waiters(ctx, key, mostWaiters)
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

func (p *program) waitedKeys(ctx context.Context, limit int) error {
	if limit < 1 {
		return usage("--limit %d must be at least 1", limit)
	}
	t, _, end, err := p.table(adapter.Reading(ctx))
	if err != nil {
		return err
	}
	defer end()
	// One more than the largest number would be none.
	found, err := shownOf(t).Waited(ctx, "", "", min(limit, 1<<31-2)+1)
	if err != nil {
		return err
	}
	return p.printWaited(found[:min(len(found), limit)], len(found) > limit)
}

func (p *program) printWaited(found []shown.Waited, more bool) error {
	keys, rows := make([]waitedKey, len(found)), make([][]string, len(found))
	for i, w := range found {
		k := waitedKey{Key: keytext.Show(w.Key), Queued: w.Queued, Processes: w.Processes}
		rows[i] = []string{k.Key, strconv.Itoa(w.Queued), strconv.Itoa(w.Processes), "(not held)", "-"}
		if w.Held {
			k.Holder, k.Age = w.Identity, w.Age.Seconds()
			rows[i][3], rows[i][4] = listing.Plain(w.Identity), listing.Span(w.Age)
		}
		keys[i] = k
	}
	switch {
	case p.out.IsJSON():
		return p.out.JSON(struct {
			Keys []waitedKey `json:"keys"`
			More bool        `json:"more,omitempty"`
		}{keys, more})
	case len(found) == 0:
		fmt.Fprintln(p.stderr, "rowlock: no key is waited for")
		return nil
	case more:
		defer fmt.Fprintln(p.stderr, "rowlock: there are more keys: --limit lists more")
	}
	return p.out.Table(waitedColumns, rows)
}
