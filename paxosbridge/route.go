package paxosbridge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// returning is the home of a key that is being taken back by force. No cluster may be called so.
const returning = 32767

// route is what this process believes of a key that is in the cluster. It may be old: it is only a guess of where to ask first, and both
// stores refuse what is not theirs.
type route struct {
	epoch int64
	since time.Time // this process has known of it
	read  time.Time // the statement was sent by which the row last said so
	why   string
	busy  bool
	err   error // why the last call to the cluster failed
}

// routes has the keys that are not in the table, which are few.
type routes struct {
	mu     sync.RWMutex
	away   map[string]*route
	stayed map[string]time.Time // when a key came back
	n      atomic.Int64
}

// epoch returns the epoch in which a key is in the cluster, or 0 if it is in the table as far as is known. While nothing is in the
// cluster it costs one load.
func (r *routes) epoch(key string) int64 {
	if r.n.Load() == 0 {
		return 0
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if at := r.away[key]; at != nil {
		return at.epoch
	}
	return 0
}

// set notes that the row of key said so when it was asked at sent. An older epoch is no news.
func (r *routes) set(key string, epoch int64, sent time.Time, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.away[key]
	switch {
	case at == nil || at.epoch < epoch:
		r.away[key] = &route{epoch: epoch, since: sent, read: sent, why: why}
	case at.epoch == epoch && sent.After(at.read):
		at.read = sent
	}
	r.n.Store(int64(len(r.away)))
}

// drop forgets a key that is in the cluster no more, unless it has moved there again since.
func (r *routes) drop(key string, epoch int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.away[key]; at != nil && at.epoch <= epoch {
		delete(r.away, key)
		r.stayed[key] = now
	}
	r.n.Store(int64(len(r.away)))
}

// with calls f with a key's route, if it has one.
func (r *routes) with(key string, f func(*route)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.away[key]; at != nil {
		f(at)
	}
}

func (r *routes) keys() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.away))
}

// rows reads the rows of keys.
func (b *Bridge) rows(ctx context.Context, keys []string) (map[string]lease.Record, error) {
	records, err := b.table.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return nil, err
	}
	rows := make(map[string]lease.Record, len(records))
	for _, r := range records {
		rows[r.Key] = r
	}
	return rows, nil
}

// ask reads where keys are, and takes note of it.
func (b *Bridge) ask(ctx context.Context, keys []string, why string) (map[string]lease.Record, error) {
	sent := time.Now()
	rows, err := b.rows(ctx, keys)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if row, ok := rows[key]; ok && row.Home == b.cfg.Home {
			b.routes.set(key, lease.Epoch(row.Token), sent, why)
		} else {
			b.routes.drop(key, lease.Epoch(row.Token), sent)
		}
	}
	return rows, nil
}

// reroute reads where a key is. It returns an error if that is neither here nor there.
func (b *Bridge) reroute(ctx context.Context, key string) (lease.Record, error) {
	rows, err := b.ask(ctx, []string{key}, "its row said so")
	row := rows[key]
	switch {
	case err != nil:
		return row, fmt.Errorf("paxosbridge: where is %q: %w", key, err)
	case row.Home == lease.HomeTable, row.Home == b.cfg.Home, row.Home == returning:
		return row, nil
	}
	return row, fmt.Errorf("%w: %q is at home %d; this bridge's is %d", lease.ErrMoved, key, row.Home, b.cfg.Home)
}

// refreshing keeps the routes from being older than Refresh, all in one read. Now and then the audit does, which reads these rows and more;
// but where the cluster is down it cannot.
func (b *Bridge) refreshing() {
	last := time.Now()
	b.every(b.cfg.Refresh, func(ctx context.Context) {
		b.routes.lastStays(time.Now(), b.cfg.MinStay) // nobody else forgets them where nothing moves by itself
		if time.Since(last) >= auditEvery {
			last = time.Now()
			err := b.audit(ctx, b.cfg.MoveTimeout)
			if err == nil {
				return
			}
			b.cfg.Logger.WarnContext(ctx, "paxosbridge: the audit failed", "error", err)
		}
		if err := b.bounded(ctx, b.refresh); err != nil {
			b.cfg.Logger.WarnContext(ctx, "paxosbridge: the homes of keys could not be read", "error", err)
		}
	})
}

func (b *Bridge) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.MoveTimeout)
	defer cancel()
	return f(ctx)
}

func (b *Bridge) refresh(ctx context.Context) error {
	keys := b.routes.keys()
	if len(keys) == 0 {
		return nil
	}
	_, err := b.ask(ctx, keys, "its row said so")
	return err
}
