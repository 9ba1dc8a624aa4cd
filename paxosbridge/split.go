package paxosbridge

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// isAway reports whether the cluster granted a lease. Each move begins an epoch, so that the
// table's epochs are even and the cluster's are odd.
func isAway(token lease.Token) bool { return lease.Epoch(token)%2 == 1 }

// call is a batch call of a store.
type call[Q, A any] func(context.Context, []Q) ([]A, error)

// split is how a batch is split between two calls.
type split[Q, A any] struct {
	second func(Q) bool // whether an item is for b
	a, b   call[Q, A]
	failed func(error) A
}

// run puts the answers in order. It runs both calls at once, so that a store that hangs does not
// use up the time of the other. If both were called, the error of one becomes the error of its
// items.
func (s split[Q, A]) run(ctx context.Context, items []Q) ([]A, error) {
	var places [2][]int
	for i, q := range items {
		n := 0
		if s.second(q) {
			n = 1
		}
		places[n] = append(places[n], i)
	}
	switch len(items) {
	case 0:
		return []A{}, nil
	case len(places[0]):
		return answered(ctx, items, s.a)
	case len(places[1]):
		return answered(ctx, items, s.b)
	}
	out := make([]A, len(items))
	var wg sync.WaitGroup
	for n, f := range []call[Q, A]{s.a, s.b} {
		wg.Go(func() {
			got, err := f(ctx, adapter.Pick(items, places[n]))
			for m, a := range adapter.Each("bridge", got, err, len(places[n]), s.failed) {
				out[places[n][m]] = a
			}
		})
	}
	wg.Wait()
	return out, nil
}

// answered checks that there are as many answers as items.
func answered[Q, A any](ctx context.Context, items []Q, f call[Q, A]) ([]A, error) {
	got, err := f(ctx, items)
	if err = adapter.Count("bridge", len(got), len(items), err); err != nil {
		return nil, err
	}
	return got, nil
}

// itemByItem is a call without a batch of its own. The error of one item alone is the call's.
func itemByItem[Q, A any](f func(Q) (A, error)) call[Q, A] {
	return func(_ context.Context, items []Q) (out []A, err error) {
		out = make([]A, len(items))
		for i, q := range items {
			out[i], err = f(q)
		}
		if len(items) > 1 {
			err = nil
		}
		return out, err
	}
}

func acquireError(err error) lease.Acquired { return lease.Acquired{Err: err} }
