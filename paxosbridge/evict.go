package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Evictor = (*Bridge)(nil)

// Evict is the table's, for a key that is there. Of one in the cluster no row is locked that its taker would have to wait for.
func (b *Bridge) Evict(ctx context.Context, key string, least time.Duration) ([]lease.Evicted, error) {
	e, ok := seam.As[lease.Evictor](b.table)
	if !ok || b.routes.epoch(key) != 0 {
		return nil, fmt.Errorf("%w: evict: %q is not in a table that can", lease.ErrUnsupported, key)
	}
	return e.Evict(ctx, key, least)
}
