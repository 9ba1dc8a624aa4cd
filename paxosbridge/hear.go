package paxosbridge

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"golang.org/x/sync/errgroup"
)

// ears are who listens in this process. A move is told to them at once: the two stores tell of it too, but not all can.
type ears struct {
	mu sync.Mutex
	m  map[*ear]struct{}
}

type ear struct{ heard func(key string) }

func (e *ears) tell(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for one := range e.m {
		one.heard(key)
	}
}

// Listen hears of both stores, and of moves.
func (b *Bridge) Listen(ctx context.Context, heard func(key string)) error {
	one := &ear{heard}
	b.ears.mu.Lock()
	b.ears.m[one] = struct{}{}
	b.ears.mu.Unlock()
	defer func() {
		b.ears.mu.Lock()
		delete(b.ears.m, one)
		b.ears.mu.Unlock()
	}()
	heard("")
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range []lease.Notifier{b.table, b.cluster} {
		g.Go(func() error {
			err := n.Listen(ctx, heard)
			if errors.Is(err, lease.ErrUnsupported) { // there is the poll, and there are the moves
				<-ctx.Done()
				err = ctx.Err()
			}
			return err
		})
	}
	return g.Wait()
}

// Announce tells those who wait where each key is.
func (b *Bridge) Announce(ctx context.Context, keys []string) error {
	here, there := b.split(keys)
	var errs []error
	if len(here) > 0 {
		errs = append(errs, b.table.Announce(ctx, here))
	}
	if len(there) > 0 {
		errs = append(errs, b.cluster.Announce(ctx, there))
	}
	return errors.Join(errs...)
}

// Await tells the table what this process waits for there. The cluster's listeners need not be told of.
func (b *Bridge) Await(ctx context.Context, process lease.Owner, keys []string, d time.Duration) error {
	if here, _ := b.split(keys); len(here) > 0 {
		return b.table.Await(ctx, process, here, d)
	}
	return nil
}

// Desist takes that back.
func (b *Bridge) Desist(ctx context.Context, process lease.Owner, keys []string) error {
	if here, _ := b.split(keys); len(here) > 0 {
		return b.table.Desist(ctx, process, here)
	}
	return nil
}

// Awaited asks the table. Of what is in the cluster nobody knows, so that others may always wait for it.
func (b *Bridge) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	return each(ctx, keys, func(key string) bool { return b.routes.epoch(key) != 0 },
		func(ctx context.Context, keys []string) ([]bool, error) { return b.table.Awaited(ctx, process, keys) },
		func(_ context.Context, keys []string) ([]bool, error) {
			return slices.Repeat([]bool{true}, len(keys)), nil
		},
		func(error) bool { return true })
}

func (b *Bridge) split(keys []string) (here, there []string) {
	for _, key := range keys {
		if b.routes.epoch(key) == 0 {
			here = append(here, key)
		} else {
			there = append(there, key)
		}
	}
	return here, there
}
