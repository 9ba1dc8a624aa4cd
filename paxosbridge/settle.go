package paxosbridge

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// note remembers for Settle that a request that may grant had an unknown outcome.
func (b *Bridge) note(answers []lease.Acquired, err error) {
	if isUnsure(answers, err) {
		b.unknown.Note()
	}
}

// Settle returns when both stores have settled, or with ctx. Without it a closing client would
// release the key before a running acquire is granted it.
func (b *Bridge) Settle(ctx context.Context) {
	for _, store := range []lease.Store{b.table, b.cluster} {
		if s, ok := adapter.As[lease.Settler](store); ok {
			s.Settle(ctx)
		} else {
			b.unknown.Wait(ctx, serverBound)
		}
	}
}
