package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Sweep sweeps the table, which keeps rows that are away. Records of the cluster are kept for ever,
// because they refuse late requests.
func (b *Bridge) Sweep(ctx context.Context, opts lease.SweepOptions) (removed int64, err error) {
	s, err := ability[lease.Sweeper](b.table, "sweep")
	if err != nil {
		return 0, err
	}
	return s.Sweep(ctx, opts)
}

// RequiresSync reports whether the table does. A cluster answers when a majority has a grant.
func (b *Bridge) RequiresSync() bool {
	s, ok := adapter.As[lease.SyncRequirer](b.table)
	return ok && s.RequiresSync()
}

// Reaches reports whether a key of this placement is the bridge's. Waiters ask for one that is taken
// back by force too, because the process that began that may have died.
func (b *Bridge) Reaches(placement int) bool {
	return placement == b.cfg.Placement || placement == returning
}

// Evict is the table's, for a key that is there. For a key in the cluster it returns
// [lease.ErrUnsupported], because a client that acquires such a key waits for no row lock.
func (b *Bridge) Evict(ctx context.Context, key string, least time.Duration) ([]lease.Evicted, error) {
	if b.routes.epoch(key) != 0 {
		return nil, fmt.Errorf("%w: evict: %q is not in the table", lease.ErrUnsupported, key)
	}
	e, err := ability[lease.Evictor](b.table, "evict")
	if err != nil {
		return nil, err
	}
	return e.Evict(ctx, key, least)
}

// Record notes in the table what chains hold and wait for. A key that is in the cluster has no
// edge: a cycle through such a key is not found.
func (b *Bridge) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration,
) error {
	g, err := ability[lease.Graph](b.table, "record waits")
	if err != nil {
		return err
	}
	return g.Record(ctx, by, chains, life)
}

// Erase removes the records.
func (b *Bridge) Erase(ctx context.Context, chains []lease.Caller) error {
	g, err := ability[lease.Graph](b.table, "record waits")
	if err != nil {
		return err
	}
	return g.Erase(ctx, chains)
}

// Edges follows the waits of chains for keys in the table.
func (b *Bridge) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	g, err := ability[lease.Graph](b.table, "record waits")
	if err != nil {
		return nil, err
	}
	return g.Edges(ctx, by, from, limit)
}

// WriteTrace adds events to the trace in the table.
func (b *Bridge) WriteTrace(ctx context.Context, events []lease.TraceEvent) error {
	t, err := ability[lease.Tracer](b.table, "keep a trace")
	if err != nil {
		return err
	}
	return t.WriteTrace(ctx, events)
}

// ReadTrace lists events of the trace in the table.
func (b *Bridge) ReadTrace(ctx context.Context, f lease.TraceFilter) ([]lease.TraceEvent, error) {
	t, err := ability[lease.Tracer](b.table, "keep a trace")
	if err != nil {
		return nil, err
	}
	return t.ReadTrace(ctx, f)
}

// SweepTrace removes old events from the trace in the table.
func (b *Bridge) SweepTrace(ctx context.Context, o lease.SweepOptions) (int64, error) {
	t, err := ability[lease.Tracer](b.table, "keep a trace")
	if err != nil {
		return 0, err
	}
	return t.SweepTrace(ctx, o)
}

// TellMoves has told called after each move of this process, until stop is called: for the trace of
// a client over the bridge. told must return soon.
func (b *Bridge) TellMoves(told func(key string, placement int, why string)) (stop func()) {
	one := &listener{heard: func(string) {}, moved: told}
	b.report.add(one)
	return func() { b.report.remove(one) }
}
