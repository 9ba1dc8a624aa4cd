package paxosbridge

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Settle returns when both stores have settled, or with ctx. Without it a closing client would
// release the key before a running acquire is granted it. For a store that is no lease.Settler it
// waits 7 s.
func (b *Bridge) Settle(ctx context.Context) {
	bound, cancel := context.WithTimeout(ctx, serverBound)
	defer cancel()
	for _, store := range []lease.Store{b.table, b.cluster} {
		if s, ok := adapter.As[lease.Settler](store); ok {
			s.Settle(ctx)
		} else {
			<-bound.Done()
		}
	}
}
