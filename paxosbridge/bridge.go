package paxosbridge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Table is what a bridge needs of the store that keys come from. What rowlock.OpenTable returns is one.
type Table interface {
	lease.Mover
	lease.Passer
	lease.Notifier
	lease.Interest
	lease.Fencer
	lease.TxReleaser
	lease.Sweeper
}

// Bridge is a lease.Store over a table and a cluster, for rowlock.New. Each key is in one of them at a time, and its row in the
// table says in which. Close it after the client; it closes neither of the two.
type Bridge struct {
	table   Table
	cluster Cluster
	cfg     Config
	heat    *heat
	decider decider
	routes  routes
	wants   wants
	ears    ears
	unheard unheard

	base context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
}

var (
	_ lease.Store       = (*Bridge)(nil)
	_ lease.Passer      = (*Bridge)(nil)
	_ lease.Notifier    = (*Bridge)(nil)
	_ lease.Interest    = (*Bridge)(nil)
	_ lease.TxReleaser  = (*Bridge)(nil)
	_ lease.Sweeper     = (*Bridge)(nil)
	_ lease.Roamer      = (*Bridge)(nil)
	_ lease.AllAcquirer = (*Bridge)(nil)
	_ lease.Settler     = (*Bridge)(nil)

	_ lease.RenewingFencer = (*Bridge)(nil)
)

// New returns a bridge and begins to watch over keys. It looks through the cluster's records first, for moves that were left half
// done or that the database has forgotten: an error of either store is returned.
func New(ctx context.Context, table Table, cluster Cluster, cfg *Config) (*Bridge, error) {
	if isnil.Value(table) || isnil.Value(cluster) {
		return nil, fmt.Errorf("%w: paxosbridge: New needs a table and a cluster", lease.ErrConfig)
	}
	if cfg == nil {
		cfg = new(Config)
	}
	full, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Bridge{table: table, cluster: cluster, cfg: full, heat: newHeat(full.Watched, time.Now())}
	b.decider = decider{cfg: &b.cfg, heat: b.heat}
	b.routes.away, b.routes.stayed = make(map[string]*route), make(map[string]time.Time)
	b.wants.m = make(map[string]*want)
	b.ears.m = make(map[*ear]struct{})
	if err := b.Audit(ctx); err != nil {
		return nil, fmt.Errorf("paxosbridge: the first audit: %w", err)
	}
	b.base, b.stop = context.WithCancel(context.Background())
	b.wg.Go(b.refreshing)
	if full.Every > 0 {
		b.wg.Go(b.deciding)
	}
	return b, nil
}

// Close ends what the bridge does by itself and returns when its goroutines are gone. A move that is under way is finished, or given up if
// nothing was changed yet. What is in the cluster stays there.
func (b *Bridge) Close() error {
	b.stop()
	b.wg.Wait()
	return nil
}

// isAway reports whether a lease was granted by the cluster: each move begins an epoch, so that the table's are even and the cluster's odd.
func isAway(token int64) bool { return lease.Epoch(token)%2 == 1 }

// every calls f until the bridge is closed.
func (b *Bridge) every(d time.Duration, f func(context.Context)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-b.base.Done():
			return
		case <-t.C:
			f(b.base)
		}
	}
}
