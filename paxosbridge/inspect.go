package paxosbridge

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Inspect lists the keys of both stores in order. A key in the cluster is listed as the cluster has
// it, with its Placement. A free key in the cluster may be missing. If the cluster fails, the
// table's other keys are listed beside the error. If the table fails, the cluster is only asked for
// keys that f names and that are known to be there.
func (b *Bridge) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if len(f.Keys) > 0 {
		return b.inspectKeys(ctx, f)
	}
	here, err := b.table.Inspect(ctx, f)
	if err == nil {
		here, err = b.addAway(ctx, f, here)
	}
	return here, err
}

// inspectKeys asks the table for no key that is known to be in the cluster, so that waiters for
// such a key cost the table nothing. A client polls all keys that it waits for in one call: a store
// that fails costs the waiters for the keys of the other nothing.
func (b *Bridge) inspectKeys(ctx context.Context, f lease.Filter) (out []lease.Record, err error) {
	for _, key := range f.Keys {
		b.count(key) // a waiter polls
	}
	keysHere, keysThere := b.routes.split(f.Keys)
	if len(keysHere) > 0 {
		here := f
		// A row that is away is not held.
		here.Keys, here.Held, here.Limit = keysHere, false, len(keysHere)
		out, err = b.table.Inspect(ctx, here)
		for _, r := range out {
			if r.Placement == b.cfg.Placement {
				keysThere = append(keysThere, r.Key)
			}
		}
		out = slices.DeleteFunc(out, func(r lease.Record) bool { return f.Held && !r.Held })
	}
	if len(keysThere) == 0 {
		return limited(f, out), err
	}
	f.Keys = keysThere
	out, failed := b.addAway(ctx, f, out)
	return out, oneline.Join(err, failed)
}

// addAway adds the cluster's records.
func (b *Bridge) addAway(
	ctx context.Context, f lease.Filter, here []lease.Record,
) ([]lease.Record, error) {
	there, err := b.cluster.Inspect(ctx, f)
	if err != nil { // a row does not say who has a key that is away
		here = slices.DeleteFunc(here, func(r lease.Record) bool { return r.Placement == b.cfg.Placement })
	}
	return limited(f, b.merge(f, here, there)), err
}

func limited(f lease.Filter, records []lease.Record) []lease.Record {
	return records[:min(cmp.Or(max(f.Limit, 0), 1000), len(records))]
}

// merge puts both in order. A key in both is in the cluster, unless its row says that it has come
// back, or is being taken back: then its record is sealed, or of an older epoch. So is the record
// of a free key whose row was swept. Only a listing shows that there is no row.
func (b *Bridge) merge(f lease.Filter, here, there []lease.Record) []lease.Record {
	rows := make(map[string]lease.Record, len(here))
	for _, r := range here {
		rows[r.Key] = r
	}
	for _, r := range there {
		row, both := rows[r.Key]
		if both || r.Held || len(f.Keys) > 0 {
			r.Placement = b.cfg.Placement
		}
		if row.Placement == r.Placement || !both {
			rows[r.Key] = r
		}
	}
	byKey := func(a, b lease.Record) int { return cmp.Compare(a.Key, b.Key) }
	return slices.SortedFunc(maps.Values(rows), byKey)
}
