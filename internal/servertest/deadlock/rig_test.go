package deadlock

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// watched is a store that counts its records and readings, and remembers when the last reading that
// has ended was begun.
type watched struct {
	lease.Store
	graph   lease.Graph
	records atomic.Int64
	reads   atomic.Int64
	erases  atomic.Int64

	mu   sync.Mutex
	read time.Time
}

// Unwrap has all other abilities.
func (w *watched) Unwrap() lease.Store { return w.Store }

func (w *watched) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration,
) error {
	w.records.Add(1)
	return w.graph.Record(ctx, by, chains, life)
}

func (w *watched) Erase(ctx context.Context, chains []lease.Caller) error {
	w.erases.Add(1)
	return w.graph.Erase(ctx, chains)
}

func (w *watched) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	w.reads.Add(1)
	began := time.Now()
	edges, err := w.graph.Edges(ctx, by, from, limit)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = began
	return edges, err
}

func (w *watched) lastRead() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read
}

// client is a client of a store of its own, with long leases.
func client(s *servertest.Scene, m servertest.Mode) (*rowlock.Client, *watched) {
	s.Helper()
	connections := 4
	if n := s.Env.Dialect.Connections(); n > 0 {
		connections = n
	}
	store, _, err := table.Open(s.Context(), s.Env.Pool(s), s.Env.Dialect, table.Options{
		Connections: connections, Timeout: 5 * time.Second, Hints: true,
	})
	s.OK(err)
	s.Cleanup(func() { _ = store.Close() })
	w := &watched{Store: store, graph: store}
	cfg := servertest.Config(m.Set, func(c *rowlock.Config) {
		c.Logger = slog.New(slog.DiscardHandler)
	})
	c, err := rowlock.New(w, cfg)
	s.OK(err)
	s.Cleanup(func() { s.OK(c.Close()) })
	return c, w
}
