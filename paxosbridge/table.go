package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// through calls an ability of the table, which it may not have.
func through[T, A any](b *Bridge, what string, call func(T) (A, error)) (none A, err error) {
	able, err := ability[T](b.table, what)
	if err != nil {
		return none, err
	}
	return call(able)
}

// Sweep sweeps the table, which keeps rows that are away. Records of the cluster are kept for ever,
// because they refuse late requests.
func (b *Bridge) Sweep(ctx context.Context, opts lease.SweepOptions) (removed int64, err error) {
	return through(b, "sweep", func(s lease.Sweeper) (int64, error) { return s.Sweep(ctx, opts) })
}

// RequiresSync reports whether the table does. A cluster answers when a majority has a grant.
func (b *Bridge) RequiresSync() bool {
	s, ok := adapter.As[lease.SyncRequirer](b.table)
	return ok && s.RequiresSync()
}

// Reaches reports whether a key of this placement is the bridge's. Waiters ask for one that is
// taken back by force too, because the process that began that may have died.
func (b *Bridge) Reaches(placement int) bool {
	return placement == b.cfg.Placement || placement == returning
}

// Evict is the table's, for a key that is there. For a key in the cluster it returns
// [lease.ErrUnsupported], because a client that acquires such a key waits for no row lock.
func (b *Bridge) Evict(ctx context.Context, key string, least time.Duration) ([]lease.Evicted, error) {
	if b.routes.epoch(key) != 0 {
		return nil, fmt.Errorf("%w: evict: %q is not in the table", lease.ErrUnsupported, key)
	}
	return through(b, "evict", func(e lease.Evictor) ([]lease.Evicted, error) { return e.Evict(ctx, key, least) })
}

// Record notes in the table what chains hold and wait for. A key that is in the cluster has no
// edge: a cycle through such a key is not found.
func (b *Bridge) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration,
) error {
	_, err := through(b, "record waits", func(g lease.Graph) (any, error) { return nil, g.Record(ctx, by, chains, life) })
	return err
}

// Erase removes the records.
func (b *Bridge) Erase(ctx context.Context, chains []lease.Caller) error {
	_, err := through(b, "record waits", func(g lease.Graph) (any, error) { return nil, g.Erase(ctx, chains) })
	return err
}

// Edges follows the waits of chains for keys in the table.
func (b *Bridge) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	return through(b, "record waits", func(g lease.Graph) ([]lease.Edge, error) { return g.Edges(ctx, by, from, limit) })
}

// WriteTrace adds events to the trace in the table.
func (b *Bridge) WriteTrace(ctx context.Context, events []lease.TraceEvent) error {
	_, err := through(b, "keep a trace", func(t lease.Tracer) (any, error) { return nil, t.WriteTrace(ctx, events) })
	return err
}

// ReadTrace lists events of the trace in the table.
func (b *Bridge) ReadTrace(ctx context.Context, f lease.TraceFilter) ([]lease.TraceEvent, error) {
	return through(b, "keep a trace", func(t lease.Tracer) ([]lease.TraceEvent, error) { return t.ReadTrace(ctx, f) })
}

// SweepTrace removes old events from the trace in the table.
func (b *Bridge) SweepTrace(ctx context.Context, o lease.SweepOptions) (int64, error) {
	return through(b, "keep a trace", func(t lease.Tracer) (int64, error) { return t.SweepTrace(ctx, o) })
}

// TellMoves has told called after each move of this process, until stop is called: for the trace of
// a client over the bridge. told must return soon.
func (b *Bridge) TellMoves(told func(key string, placement int, why string)) (stop func()) {
	one := &listener{heard: func(string) {}, moved: told}
	b.report.add(one)
	return func() { b.report.remove(one) }
}
