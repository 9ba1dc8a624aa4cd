package paxosbridge

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/lease"
)

// serverBound is how long a store that is no lease.Settler may work on a request that its caller
// has abandoned. A client goes on releasing what such a request may have left for as long.
const serverBound = adapter.Outlives

// orphans release what movers may have been granted after they gave up. Without them the key would
// wait for the end of the mover's lease, which a cluster may also extend: etcd renews every lease
// when it elects a leader.
type orphans struct{ table, cluster *cleanup.Cleaner }

func (o *orphans) start(table Table, cluster Cluster, cfg *Config) {
	o.table = cleanup.Start(adapter.Of(table), false, cfg.Logger)
	o.cluster = cleanup.Start(adapter.Of(cluster), false, cfg.Logger)
}

// add has the lease of a mover's request released until no delayed request can be granted it. Each
// move has an owner of its own, so that no other lease is touched.
func (o *orphans) add(of lease.AcquireRequest) {
	cleaner := o.cluster
	if of.Epoch == 0 {
		cleaner = o.table
	}
	cleaner.AddLeases(lease.Lease{Key: of.Key, Owner: of.Owner})
}

// stop releases once more, for as long as a move's step may take.
func (o *orphans) stop(cfg *Config) {
	for _, cleaner := range []*cleanup.Cleaner{o.table, o.cluster} {
		ctx, cancel := context.WithTimeout(context.Background(), min(cfg.MoveTimeout, serverBound))
		if open, _ := cleaner.Counts(); open == 0 {
			cancel() // nothing to settle
		}
		if err := cleaner.Stop(ctx); err != nil {
			cfg.Logger.WarnContext(ctx, "rowlock: bridge: a mover's lease was not released and will "+
				"expire", "error", err)
		}
		cancel()
	}
}
