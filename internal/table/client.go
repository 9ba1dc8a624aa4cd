package table

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

const openTimeout = 30 * time.Second // for some fifty statements on a busy server

// ForClient is Open with a client's settings. It takes 30 s at most, unless ctx has a deadline.
func ForClient(
	ctx context.Context, db adapter.DB, d *sqlstore.Dialect, o adapter.OpenOptions,
) (none adapter.Opened, err error) {
	ctx, cancel, err := sqlstore.Opening(ctx, "rowlock.OpenContext", openTimeout)
	if err != nil {
		return none, err
	}
	defer cancel()
	d = d.IdentifiedAs(o.Identity)
	if d.OneWriter { // each opening of a file may begin an era
		o.Began = nil
	}
	limit := db.Stats().MaxOpenConnections
	// At least two, so that renewals do not wait behind all other statements.
	connections, err := conn.Count(o.Connections, conn.Merging, d.Connections(), limit, 2)
	if err != nil {
		return none, err
	}
	store, facts, err := Open(ctx, db, d, Options{
		Connections: connections, Strategy: o.Strategy, Limit: o.TTL, Evicts: o.Evicts,
		Timeout:     min(5*time.Second, max(o.TTL/3, 500*time.Millisecond)),
		RequireSync: o.RequireSync, Relax: !o.DurableRelease,
		Hints:      limit == 0 || limit > connections+d.HintConnections(), // the application needs one
		TraceNeeds: traceNeeds(limit, connections, d),
		Began:      o.Began,
	})
	if err != nil {
		return none, err // and no store: a nil pointer in an interface would not be nil
	}
	return adapter.Opened{Store: store, Server: facts.Server, Warnings: facts.Warnings}, nil
}

// traceNeeds is how many connections a pool must have for the pinned connections, the hints, the
// trace and the application. It is 0 if limit is enough.
func traceNeeds(limit, connections int, d *sqlstore.Dialect) int {
	needs := connections + 2
	if d.Listener != nil {
		needs += d.HintConnections()
	}
	if limit == 0 || limit >= needs {
		return 0
	}
	return needs
}
