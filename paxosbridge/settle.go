package paxosbridge

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Settle returns when both stores have settled, or with ctx. Without it a closing client would
// release the key before a running acquire is granted it. For a store that is no lease.Settler it
// waits 7 s.
func (b *Bridge) Settle(ctx context.Context) {
	for _, store := range []lease.Store{b.table, b.cluster} {
		if s, ok := adapter.As[lease.Settler](store); ok {
			s.Settle(ctx)
		} else {
			select {
			case <-time.After(serverBound):
			case <-ctx.Done():
			}
		}
	}
}
