package trace

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

// ElectionKey is the lock of the client that removes old events.
const ElectionKey = lease.Reserved + "trace"

// Sweeper is the trace as a reaper sweeps it.
type Sweeper struct{ lease.Tracer }

// Sweep removes old events.
func (s Sweeper) Sweep(ctx context.Context, o lease.SweepOptions) (int64, error) {
	return s.SweepTrace(ctx, o)
}
