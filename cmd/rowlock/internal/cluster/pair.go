package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

const page = 500

// Compare returns the records of keys. It reads all records, and refuses a cluster with one that
// the table must have a row for and has not: the two are then of different applications. It writes
// nothing. A bridge's own audit would take that for moves that the database has forgotten, and make
// the rows.
func Compare(
	ctx context.Context, table paxosbridge.Table, c paxosbridge.Cluster, placement int, keys []string,
) (named []paxosbridge.Record, err error) {
	for after := ""; ; {
		records, err := c.Records(ctx, after, page)
		if err != nil {
			return nil, fmt.Errorf("list the cluster's records: %w", err)
		}
		if err := compare(ctx, table, placement, records); err != nil {
			return nil, err
		}
		for _, r := range records {
			if slices.Contains(keys, r.Key) {
				named = append(named, r)
			}
		}
		if len(records) < page {
			return named, nil
		}
		after = records[len(records)-1].Key
	}
}

func compare(
	ctx context.Context, table paxosbridge.Table, placement int, records []paxosbridge.Record,
) error {
	// The row of a sealed record may have been swept since the key came back, and an even epoch was
	// opened by no bridge.
	open := slices.DeleteFunc(slices.Clone(records), func(r paxosbridge.Record) bool {
		return r.Sealed || r.Epoch%2 == 0
	})
	if len(open) == 0 {
		return nil
	}
	keys := make([]string, len(open))
	for i, r := range open {
		keys[i] = r.Key
	}
	found, err := table.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return err
	}
	rows := make(map[string]lease.Record, len(found))
	for _, row := range found {
		rows[row.Key] = row
	}
	for _, r := range open {
		if err := fits(r, rows[r.Key], placement); err != nil {
			return err
		}
	}
	return nil
}

// fits compares an open record with its row, which was read later, and is zero if there is none. A
// row of a later epoch is of a move that came between, or of one that is half done.
func fits(r paxosbridge.Record, row lease.Record, placement int) error {
	switch epoch := lease.Epoch(row.Token); {
	case epoch < r.Epoch:
		return fmt.Errorf("%w: the cluster has %s open in epoch %d, and its row is in epoch %d: check "+
			"--etcd, --etcd-prefix and --dsn; if the database was restored, the application's bridge repairs "+
			"this within a minute", lease.ErrConfig, keytext.Show(r.Key), r.Epoch, epoch)
	case epoch == r.Epoch && row.Placement != placement:
		return fmt.Errorf("%w: --placement %d: the row of %s names placement %d", lease.ErrConfig, placement,
			keytext.Show(r.Key), row.Placement)
	}
	return nil
}

// Named is a cluster as a bridge's audit shall see it: with a few records. The audit completes
// moves that are half done, and tells the bridge where these keys are.
type Named struct {
	paxosbridge.Cluster
	List []paxosbridge.Record // in key order
}

// Records lists records above a key.
func (n *Named) Records(_ context.Context, after string, limit int) ([]paxosbridge.Record, error) {
	first := slices.IndexFunc(n.List, func(r paxosbridge.Record) bool { return r.Key > after })
	if first < 0 {
		return nil, nil
	}
	rest := n.List[first:]
	return rest[:min(limit, len(rest))], nil
}

// Has reports whether the key has a record of an epoch.
func (n *Named) Has(key string, epoch int64) bool {
	return slices.ContainsFunc(n.List, func(r paxosbridge.Record) bool {
		return r.Key == key && r.Epoch == epoch
	})
}
