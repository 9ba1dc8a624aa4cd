package locktest

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// kept has stores that serve one property after the other, of a harness that can empty them. After
// a property that fails, the next begins with new ones: it need not fail for what the first left.
func (h Harness) kept(suite testing.TB) Harness {
	if h.Empty == nil {
		return h
	}
	var here, there lease.Store
	open, another := h.Open, h.Another
	h.Open = func(tb testing.TB) lease.Store {
		tb.Helper()
		tb.Cleanup(func() {
			if tb.Failed() {
				here, there = nil, nil
			}
		})
		if here == nil {
			here = open(suite)
			return here
		}
		// An acquire whose caller has left may be granted after the rows are gone.
		h.settle(tb, here, there)
		h.Empty(tb, here)
		return here
	}
	if another != nil {
		h.Another = func(_ testing.TB, s lease.Store) lease.Store {
			if there == nil {
				there = another(suite, s)
			}
			return there
		}
	}
	return h
}

func (h Harness) settle(tb testing.TB, stores ...lease.Store) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), h.limit())
	defer cancel()
	for _, s := range stores {
		if settler, ok := adapter.As[lease.Settler](s); ok {
			settler.Settle(ctx)
		}
	}
}
