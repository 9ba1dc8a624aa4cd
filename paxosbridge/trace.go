package paxosbridge

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Tracer = (*Bridge)(nil)

// tracer is what keeps the trace of all keys, wherever they live: the table.
func (b *Bridge) tracer() (lease.Tracer, error) {
	t, ok := seam.As[lease.Tracer](b.table)
	if !ok {
		return nil, fmt.Errorf("%w: bridge: the table keeps no trace (lease.Tracer)", lease.ErrUnsupported)
	}
	return t, nil
}

// WriteTrace adds events to the trace in the table.
func (b *Bridge) WriteTrace(ctx context.Context, events []lease.TraceEvent) error {
	t, err := b.tracer()
	if err != nil {
		return err
	}
	return t.WriteTrace(ctx, events)
}

// ReadTrace lists events of the trace in the table.
func (b *Bridge) ReadTrace(ctx context.Context, f lease.TraceFilter) ([]lease.TraceEvent, error) {
	t, err := b.tracer()
	if err != nil {
		return nil, err
	}
	return t.ReadTrace(ctx, f)
}

// SweepTrace removes old events from the trace in the table.
func (b *Bridge) SweepTrace(ctx context.Context, o lease.SweepOptions) (int64, error) {
	t, err := b.tracer()
	if err != nil {
		return 0, err
	}
	return t.SweepTrace(ctx, o)
}

// moves is a client that traces the moves of this process.
type moves struct {
	told func(key string, home int, why string)
}

// TellMoves has told called after each move of this process, until stop is called: for the trace of
// a client over the bridge. told must return soon.
func (b *Bridge) TellMoves(told func(key string, home int, why string)) (stop func()) {
	return b.report.tell(&moves{told})
}

func (r *reports) tell(one *moves) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[one] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.told, one)
	}
}

// traced tells of a move.
func (r *reports) traced(key string, home int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.told {
		one.told(key, home, why)
	}
}
