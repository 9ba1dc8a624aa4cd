package main

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/election"
)

// shop is some processes of a shop. Here they are clients in one process, with names of their own.
type shop struct {
	ctx     context.Context
	db      *sql.DB
	clients []*rowlock.Client
	calls   sync.WaitGroup
}

func (s *shop) open() error {
	for _, name := range []string{"web-1/4711/orders", "web-2/4713/orders", "web-3/4702/orders", "batch-1/311/import"} {
		c, err := rowlock.Open(s.db, sqlite.New(), &rowlock.Config{
			Identity: name, Fair: true, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	a, b, c, batch := s.clients[0], s.clients[1], s.clients[2], s.clients[3]
	s.hold(batch, time.Hour, "a slow import", "import/prices")
	for _, web := range []*rowlock.Client{a, b, c} {
		s.hold(web, 3*time.Second, "ship", "order/1042") // rivals
		s.calls.Go(func() { _ = election.Run(s.ctx, web, "newsletter", s.lead) })
	}
	s.hold(c, time.Minute, "needs the new prices", "cart/77", "import/prices")
	s.hold(a, 2*time.Second, "move stock", "stock/8812", "stock/97") // with the next, a cycle
	s.hold(b, 2*time.Second, "move stock", "stock/97", "stock/8812")
	return nil
}

func (s *shop) lead(ctx context.Context, _ *rowlock.Lock) error {
	<-ctx.Done()
	return ctx.Err()
}

// hold takes keys one after the other, again and again, and keeps each for d before the next.
func (s *shop) hold(c *rowlock.Client, d time.Duration, note string, keys ...string) {
	var take func(ctx context.Context, keys []string) error
	take = func(ctx context.Context, keys []string) error {
		if len(keys) == 0 {
			return nil
		}
		return c.Do(ctx, keys[0], func(ctx context.Context, _ *rowlock.Lock) error {
			if len(keys) == 1 || d < time.Minute {
				pause(ctx, d)
			}
			return take(ctx, keys[1:])
		}, rowlock.Note(note))
	}
	s.calls.Go(func() {
		for s.ctx.Err() == nil {
			_ = take(s.ctx, keys) // a cycle ends one of its calls with ErrDeadlock
			pause(s.ctx, time.Second)
		}
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (s *shop) close() {
	s.calls.Wait()
	for _, c := range s.clients {
		_ = c.Close()
	}
}
