package seam

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Traces returns what keeps the trace, or an error that wraps lease.ErrUnsupported.
func (s *Store) Traces() (lease.Tracer, error) {
	if s.tracer == nil {
		return nil, fmt.Errorf("%w: a trace needs a store that keeps one (lease.Tracer)",
			lease.ErrUnsupported)
	}
	return s.tracer, nil
}

// Keeps returns the error of a tracer over another store that has no trace, and so can keep no
// event whatever happens. It writes no event, and asks no database.
func Keeps(t lease.Tracer) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := t.WriteTrace(ctx, nil); errors.Is(err, lease.ErrUnsupported) {
		return err
	}
	return nil
}

// Moves is a store that tells where keys have moved to.
type Moves interface {
	// TellMoves has told called after each move of this process, until stop is called. told must
	// return soon.
	TellMoves(told func(key string, home int, why string)) (stop func())
}

// TellMoves is Moves of the store, if that is one.
func (s *Store) TellMoves(told func(key string, home int, why string)) (stop func()) {
	if m, ok := As[Moves](s.store); ok {
		return m.TellMoves(told)
	}
	return func() {}
}
