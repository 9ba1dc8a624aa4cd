package paxosbridge

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
	"golang.org/x/sync/errgroup"
)

// Listen calls heard for notifications of both stores, and for moves of this process. A store
// without notifications is polled.
func (b *Bridge) Listen(ctx context.Context, heard func(key string)) error {
	one := &listener{heard: heard}
	b.report.add(one)
	defer b.report.remove(one)
	heard("")
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range b.report.stores {
		g.Go(func() error {
			err := n.Listen(ctx, heard)
			if errors.Is(err, lease.ErrUnsupported) { // waiters poll, and hear of moves
				<-ctx.Done()
				err = ctx.Err()
			}
			return err
		})
	}
	return g.Wait()
}

// Announce notifies the waiters of each key in the store where the key is.
func (b *Bridge) Announce(ctx context.Context, keys []string) error {
	here, there := b.routes.split(keys)
	var errs []error
	if len(here) > 0 {
		errs = append(errs, b.notifier.Announce(ctx, here))
	}
	if len(there) > 0 {
		errs = append(errs, b.cluster.Announce(ctx, there))
	}
	return oneline.Join(errs...)
}

// Register registers this process as a waiter in the table, for the keys there. A cluster needs no
// registration.
func (b *Bridge) Register(
	ctx context.Context, process lease.Owner, identity string, keys []string, d time.Duration,
) error {
	if here, _ := b.routes.split(keys); len(here) > 0 {
		return b.registry.Register(ctx, process, identity, here, d)
	}
	return nil
}

// Unregister unregisters this process.
func (b *Bridge) Unregister(ctx context.Context, process lease.Owner, keys []string) error {
	if here, _ := b.routes.split(keys); len(here) > 0 {
		return b.registry.Unregister(ctx, process, here)
	}
	return nil
}

// Awaited asks the table. For a key in the cluster it returns true, because waiters there are
// unknown.
func (b *Bridge) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	return split[string, bool]{
		func(key string) bool { return b.routes.epoch(key) != 0 },
		func(ctx context.Context, keys []string) ([]bool, error) {
			return b.registry.Awaited(ctx, process, keys)
		},
		itemByItem(func(string) (bool, error) { return true, nil }),
		func(error) bool { return true },
	}.run(ctx, keys)
}
