package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/pace"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/schema"
	"github.com/spf13/cobra"
)

func (p *program) bench() *cobra.Command {
	var each time.Duration
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure locks on this database, beside raw statements",
		Long: long(`
Measure pairs of Lock and Unlock per second, and how soon a key passes to a waiter, beside the two
statements that the least lease in a row needs. It takes five times --for.

It makes tables of its own (rowlock_bench_…) and removes them, so that it needs the right to create
tables. If it is killed, they stay: remove them with the command that it prints first. It uses as
much of the server as it gets.`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.measure(c.Context(), each) },
	}
	c.Flags().DurationVar(&each, "for", 5*time.Second, "time for each measurement")
	return p.listed(c)
}

// figure is one line of the result.
type figure struct {
	What       string  `json:"what"`
	Goroutines int     `json:"goroutines,omitempty"`
	Pairs      float64 `json:"pairs_per_second,omitempty"`
	OfRaw      float64 `json:"of_raw,omitempty"`
	P50        float64 `json:"p50_ms,omitempty"`
	P99        float64 `json:"p99_ms,omitempty"`
}

const crowd = 16

func (p *program) measure(ctx context.Context, each time.Duration) (err error) {
	if each < 100*time.Millisecond || each > time.Minute {
		return usage("bench: --for %s must be between 100ms and 1m", each)
	}
	var random [4]byte
	_, _ = rand.Read(random[:])
	p.settings.Prefix = "rowlock_bench_" + hex.EncodeToString(random[:]) + "_"
	t, end, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer end()
	fmt.Fprintf(p.stderr, "rowlock: bench: tables of its own; if it is killed, remove them with "+
		"`rowlock --prefix %s uninstall --yes`\n", p.settings.Prefix)
	defer func() {
		// Ctrl-C has ended ctx by then.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if failed := schema.Uninstall(ctx, t.DB, t.Dialect); failed != nil && err == nil {
			err = failed
		}
	}()
	if err := schema.Migrate(ctx, t.DB, t.Dialect); err != nil {
		return err
	}
	figures, err := p.figures(ctx, t, each)
	if err != nil {
		return err
	}
	return p.printFigures(figures)
}

func (p *program) figures(ctx context.Context, t *target.Target, each time.Duration) ([]figure, error) {
	cfg := &rowlock.Config{Logger: p.logger()}
	a, err := rowlock.OpenContext(ctx, t.DB, t.Dialect, cfg)
	if err != nil {
		return nil, p.cure(err)
	}
	defer func() { _ = a.Close() }()
	raw := pace.NewRaw(t.DB, sqlstore.Of(t.Dialect))
	var all []figure
	for _, n := range []int{1, crowd} {
		least, err := raw.Pairs(ctx, n, each)
		if err != nil {
			return nil, fmt.Errorf("rowlock: bench: raw statements: %w", err)
		}
		pairs, err := pace.Pairs(ctx, a, n, each)
		if err != nil {
			return nil, err
		}
		all = append(all, figure{What: "raw statements", Goroutines: n, Pairs: least},
			figure{What: "Lock, Unlock", Goroutines: n, Pairs: pairs, OfRaw: pairs / max(least, 1)})
	}
	b, err := rowlock.OpenContext(ctx, t.DB, t.Dialect, cfg)
	if err != nil {
		return nil, p.cure(err)
	}
	defer func() { _ = b.Close() }()
	p50, p99, err := pace.HandOvers(ctx, a, b, each)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return append(all, figure{What: "hand-over", P50: ms(p50), P99: ms(p99)}), err
}

func (p *program) printFigures(all []figure) error {
	if p.out.IsJSON() {
		return p.out.JSON(map[string]any{"figures": all})
	}
	var rows [][]string
	for _, f := range all {
		row := []string{f.What, listing.Count(f.Goroutines), fmt.Sprintf("%.0f pairs/s", f.Pairs), ""}
		if f.OfRaw > 0 {
			row[3] = fmt.Sprintf("%.2f of raw", f.OfRaw)
		}
		if f.What == "hand-over" {
			row[1], row[2], row[3] = "2", fmt.Sprintf("%.1f ms median", f.P50), fmt.Sprintf("%.1f ms p99", f.P99)
		}
		rows = append(rows, row)
	}
	return p.out.Table([]listing.Column{
		{Name: "WHAT"}, {Name: "CALLERS", Right: true}, {Name: "RESULT", Right: true}, {Name: "", Right: true},
	}, rows)
}
