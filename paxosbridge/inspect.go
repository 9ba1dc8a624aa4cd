package paxosbridge

import (
	"cmp"
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// Inspect lists the keys of both stores in order. A key that is in the cluster is listed as the cluster has it, with its Home; one that
// nobody holds there may be missing.
func (b *Bridge) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if len(f.Keys) > 0 {
		return b.inspectKeys(ctx, f)
	}
	here, err := b.table.Inspect(ctx, f)
	if err != nil {
		return nil, err
	}
	there, err := b.away(ctx, f)
	if err != nil {
		return nil, err
	}
	merged := merge(here, there)
	return merged[:min(limitOf(f), len(merged))], nil
}

// inspectKeys asks the table for nothing that is known to be in the cluster: who waits for a key that has moved costs the table nothing.
func (b *Bridge) inspectKeys(ctx context.Context, f lease.Filter) (out []lease.Record, err error) {
	for _, key := range f.Keys {
		b.count(key) // somebody waits for it
	}
	keysHere, keysThere := b.split(f.Keys)
	if len(keysHere) > 0 {
		here := f
		here.Keys, here.Held, here.Limit = keysHere, false, len(keysHere) // a row that is away is held by nobody there
		if out, err = b.table.Inspect(ctx, here); err != nil {
			return nil, err
		}
		for _, r := range out {
			if r.Home == b.cfg.Home {
				keysThere = append(keysThere, r.Key)
			}
		}
		out = slices.DeleteFunc(out, func(r lease.Record) bool { return f.Held && !r.Held })
	}
	if len(keysThere) > 0 {
		f.Keys = keysThere
		there, err := b.away(ctx, f)
		if err != nil {
			return nil, err
		}
		out = merge(out, there)
	}
	return out[:min(limitOf(f), len(out))], nil
}

func limitOf(f lease.Filter) int {
	if f.Limit <= 0 {
		return 1000
	}
	return f.Limit
}

func (b *Bridge) away(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	there, err := b.cluster.Inspect(ctx, f)
	for i := range there {
		there[i].Home = b.cfg.Home
	}
	return there, err
}

// merge puts both in order. A key that is in both is in the cluster, or both would hold it.
func merge(here, there []lease.Record) []lease.Record {
	away := make(map[string]bool, len(there))
	for _, r := range there {
		away[r.Key] = true
	}
	here = slices.DeleteFunc(here, func(r lease.Record) bool { return away[r.Key] && r.Home != lease.HomeTable })
	known := make(map[string]bool, len(here))
	for _, r := range here {
		known[r.Key] = true
	}
	for _, r := range there {
		if !known[r.Key] { // else a record that is sealed: the key has come back
			here = append(here, r)
		}
	}
	slices.SortFunc(here, func(a, b lease.Record) int { return cmp.Compare(a.Key, b.Key) })
	return here
}
