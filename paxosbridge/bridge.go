package paxosbridge

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/heat"
)

// Bridge is a lease.Store over a table and a cluster, for rowlock.New. Each key is in one of them
// at a time, and its row in the table says in which. Close it after the client. It closes neither
// store.
type Bridge struct {
	mover
	notifier lease.Notifier // the table's
	registry lease.Registry

	heat  *heat.Counters
	hooks *tell.Queue

	free func() // the table's new eras
	stop context.CancelFunc
	wg   sync.WaitGroup
}

var (
	_ lease.Passer      = (*Bridge)(nil)
	_ lease.Notifier    = (*Bridge)(nil)
	_ lease.Registry    = (*Bridge)(nil)
	_ lease.TxReleaser  = (*Bridge)(nil)
	_ lease.Sweeper     = (*Bridge)(nil)
	_ lease.Roamer      = (*Bridge)(nil)
	_ lease.AllAcquirer = (*Bridge)(nil)
	_ lease.Settler     = (*Bridge)(nil)
	_ lease.Evictor     = (*Bridge)(nil)
	_ lease.Graph       = (*Bridge)(nil)
	_ lease.Tracer      = (*Bridge)(nil)

	_ lease.RenewingFencer = (*Bridge)(nil)
	_ lease.SyncRequirer   = (*Bridge)(nil)
)

// New returns a bridge and starts its audits and its moves by heat. It claims the cluster for the
// table first ([Claimer]), and refuses one that belongs to another table with lease.ErrConfig. Then
// it runs an audit ([Bridge.Audit]), and returns an error of either store. It returns
// lease.ErrUnsupported for a table that is no lease.Notifier or no lease.Registry. The stores stay
// the caller's to close.
func New(ctx context.Context, table Table, cluster Cluster, cfg *Config) (*Bridge, error) {
	if isnil.Value(table) || isnil.Value(cluster) {
		return nil, fmt.Errorf("%w: bridge: New needs a table and a cluster", lease.ErrConfig)
	}
	full, err := cmp.Or(cfg, new(Config)).withDefaults()
	if err = cmp.Or(isnil.Context("paxosbridge.New", ctx), err); err != nil {
		return nil, err
	}
	b, err := newBridge(table, cluster, &full)
	if err != nil {
		return nil, err
	}
	if err := claim(ctx, table, cluster, full.Placement); err != nil {
		return nil, err
	}
	b.table, b.free = holdEras(table, func(ctx context.Context) error {
		return b.audit(ctx, full.MoveTimeout)
	})
	if err := b.Audit(ctx); err != nil {
		b.free()
		return nil, fmt.Errorf("rowlock: bridge: the first audit: %w", err)
	}
	b.hooks.Flush(time.Second) // a caller knows then what was recalled
	b.pending.orphans.start(table, cluster, &full)
	base, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.wg.Go(func() { b.refreshing(base) })
	if full.Every > 0 {
		b.wg.Go(func() { b.deciding(base, b.heat) })
	}
	return b, nil
}

func newBridge(table Table, cluster Cluster, cfg *Config) (*Bridge, error) {
	notifier, err := ability[lease.Notifier](table, "notify waiters")
	if err != nil {
		return nil, err
	}
	registry, err := ability[lease.Registry](table, "register waiters")
	if err != nil {
		return nil, err
	}
	hooks := tell.With(cfg.Logger)
	cfg.Hooks = Hooks{
		Moved: tell.Later4(hooks, cfg.Hooks.Moved), Stayed: tell.Later2(hooks, cfg.Hooks.Stayed),
		Recalled: tell.Later2(hooks, cfg.Hooks.Recalled),
	}
	return &Bridge{
		mover:    newMover(table, notifier, cluster, cfg),
		notifier: notifier, registry: registry,
		heat: heat.New(cfg.Heat.watched(), time.Now()), hooks: hooks,
	}, nil
}

// Tables returns a value that is equal for the table and for every bridge over it: by it a client
// finds what its call chain holds through another, wherever the key is.
func (b *Bridge) Tables() any { return adapter.TablesOf(b.table) }

// Close stops audits and moves by heat, and returns when the bridge's goroutines have ended. It
// completes a running move, or cancels it if the move has changed nothing yet. Keys in the cluster
// stay there.
func (b *Bridge) Close() error {
	b.stop()
	b.wg.Wait()
	b.pending.orphans.stop(b.cfg)
	b.free()
	b.hooks.Stop(time.Second)
	return nil
}
