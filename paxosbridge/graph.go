package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// Record notes in the table what chains hold and wait for. A key that is in the cluster has no
// edge: a cycle through such a key is not found.
func (b *Bridge) Record(
	ctx context.Context, by lease.Party, chains []lease.Chain, life time.Duration,
) error {
	g, err := b.graph()
	if err != nil {
		return err
	}
	return g.Record(ctx, by, chains, life)
}

// Erase removes the records.
func (b *Bridge) Erase(ctx context.Context, chains []lease.Chain) error {
	g, err := b.graph()
	if err != nil {
		return err
	}
	return g.Erase(ctx, chains)
}

// Edges follows the waits of chains for keys in the table.
func (b *Bridge) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	g, err := b.graph()
	if err != nil {
		return nil, err
	}
	return g.Edges(ctx, by, from, limit)
}

func (b *Bridge) graph() (lease.Graph, error) {
	g, ok := seam.As[lease.Graph](b.table)
	if !ok {
		return nil, fmt.Errorf("%w: the bridge's table records no waits", lease.ErrUnsupported)
	}
	return g, nil
}
