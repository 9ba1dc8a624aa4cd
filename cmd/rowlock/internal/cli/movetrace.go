package cli

import (
	"context"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/trace"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// traceMoves has a client write the bridge's moves to the trace, if the application's clients write
// one: a process tells of its own moves only. end writes them. A trace that cannot be written is
// for the log, and keeps no key from moving.
func (p *program) traceMoves(
	ctx context.Context, table paxosbridge.Table, bridge *paxosbridge.Bridge,
) (end func()) {
	if !isTraced(ctx, table) {
		return func() {}
	}
	cfg := &rowlock.Config{Logger: p.logger(), Identity: operator()}
	cfg.Reaper.Off = true // what sweeps is the application's, and knows its retention
	cfg.Trace = rowlock.TraceConfig{On: true, Events: []lease.EventKind{lease.EventMoved}}
	client, err := rowlock.New(bridge, cfg)
	if err != nil {
		cfg.Logger.Warn("rowlock: the move is not traced", "error", err)
		return func() {}
	}
	return func() { _ = client.Close() }
}

// isTraced reports whether a client has been elected to sweep the trace, or events are there. In a
// trace that no client writes, nothing would ever sweep what the command adds.
func isTraced(ctx context.Context, table paxosbridge.Table) bool {
	elected, err := table.Inspect(ctx, lease.Filter{Keys: []string{trace.ElectionKey}, Limit: 1})
	if err == nil && len(elected) > 0 {
		return true
	}
	tracer, can := adapter.As[lease.Tracer](table)
	if !can {
		return false
	}
	events, err := tracer.ReadTrace(ctx, lease.TraceFilter{Limit: 1})
	return err == nil && len(events) > 0
}
