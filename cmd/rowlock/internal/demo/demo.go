// Package demo is a made-up shop, to look at before there are locks of one's own: rivals for an
// order, a slow import that others wait for, an election, a cron job whose key stays locked, two
// callers that wait for each other, and a key that an operator has taken.
package demo

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/schema"
)

// Run has the shop work in a SQLite file in a temporary folder while show runs.
func Run(ctx context.Context, show func(file string) error) error {
	dir, err := os.MkdirTemp("", "rowlock-demo")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "shop.db")
	db, err := sqlite.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := schema.Migrate(ctx, db, sqlite.New()); err != nil {
		return err
	}
	var processes []*rowlock.Client // in one, with names of their own
	for _, name := range []string{"web-1/4711/orders", "web-2/4713/orders", "web-3/4702/orders", "batch-1/311/import"} {
		c, err := rowlock.OpenContext(ctx, db, sqlite.New(), &rowlock.Config{
			Identity: name, Fair: true, Logger: slog.New(slog.DiscardHandler), Trace: rowlock.TraceConfig{On: true},
		})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		processes = append(processes, c)
	}
	ctx, end := context.WithCancel(ctx)
	s := &shop{ctx: ctx}
	defer s.calls.Wait()
	defer end()
	if err := s.work(processes[0], processes[1], processes[2], processes[3]); err != nil {
		return err
	}
	return show(file)
}

type shop struct {
	ctx   context.Context
	calls sync.WaitGroup
}

func (s *shop) work(a, b, c, batch *rowlock.Client) error {
	hangs, err := batch.Lock(s.ctx, "export/ledger", rowlock.Note("hangs"))
	if err != nil {
		return err
	}
	defer func() { _ = hangs.Unlock(s.ctx) }() // it is lost by then
	taken := rowlock.Force{By: "ada@ops", Reason: "hangs since Friday"}
	if _, err := a.ForceRelease(s.ctx, "export/ledger", taken); err != nil {
		return err
	}
	s.hold(batch, time.Hour, "a slow import", "import/prices")
	s.hold(c, time.Second, "needs the new prices", "cart/77", "import/prices")
	s.hold(a, 2*time.Second, "move stock", "stock/8812", "stock/97") // with the next, a cycle
	s.hold(b, 2*time.Second, "move stock", "stock/97", "stock/8812")
	for _, web := range []*rowlock.Client{a, b, c} {
		s.hold(web, 3*time.Second, "ship", "order/1042") // rivals
		s.repeat(func() error { return election.Run(s.ctx, web, "newsletter", lead) })
		s.repeat(func() error { return report(s.ctx, web) })
	}
	return nil
}

func lead(ctx context.Context, _ *rowlock.Lock) error {
	<-ctx.Done()
	return ctx.Err()
}

// report is done at once: MinHold keeps the other processes from the same run.
func report(ctx context.Context, c *rowlock.Client) error {
	l, err := c.TryLock(ctx, "cron/report", rowlock.MinHold(20*time.Second), rowlock.Note("every 20 s"))
	if err != nil {
		return err
	}
	return l.Unlock(ctx)
}

// hold takes keys one after the other, again and again, and keeps each for d before the next.
func (s *shop) hold(c *rowlock.Client, d time.Duration, note string, keys ...string) {
	s.repeat(func() error { return take(s.ctx, c, d, note, keys) })
}

func take(ctx context.Context, c *rowlock.Client, d time.Duration, note string, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return c.Do(ctx, keys[0], func(ctx context.Context, _ *rowlock.Lock) error {
		retry.Sleep(ctx, d)
		return take(ctx, c, d, note, keys[1:])
	}, rowlock.Note(note))
}

// repeat calls f until the end, whatever becomes of it: a cycle ends one of its calls.
func (s *shop) repeat(f func() error) {
	s.calls.Go(func() {
		for s.ctx.Err() == nil {
			_ = f()
			retry.Sleep(s.ctx, time.Second)
		}
	})
}
