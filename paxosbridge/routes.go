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

// routes knows which keys are in the cluster: what their rows said when they were last read. It may
// be outdated. It only says which store to ask first, because a store refuses a key that is
// elsewhere.
type routes struct {
	cfg   *Config
	table lease.Store

	mu       sync.RWMutex
	away     map[string]*route
	returned map[string]time.Time // when a key came back
	forced   map[string]route     // since when this process knows that a key is taken back by force
	n        atomic.Int64         // len(away)
}

// route is what this process knows of a key in the cluster.
type route struct {
	epoch int64
	since time.Time // when this process first knew of it
	read  time.Time // when the statement was sent by which the row last confirmed it
	why   string
	held  bool  // at the last poll
	err   error // why the last call to the cluster failed
}

func newRoutes(cfg *Config, table lease.Store) *routes {
	return &routes{
		cfg: cfg, table: table,
		away: make(map[string]*route), returned: make(map[string]time.Time), forced: make(map[string]route),
	}
}

// epoch returns the epoch in which a key is in the cluster, or 0 if it is believed to be in the
// table. While the cluster has no key it costs one load.
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

// split returns the keys in the table, and those in the cluster.
func (r *routes) split(keys []string) (here, there []string) {
	for _, key := range keys {
		if r.epoch(key) == 0 {
			here = append(here, key)
		} else {
			there = append(there, key)
		}
	}
	return here, there
}

// leave notes that a read sent at sent found the key in the cluster. It ignores an older epoch.
func (r *routes) leave(key string, epoch int64, sent time.Time, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.away[key]
	switch {
	case at == nil || at.epoch < epoch:
		r.away[key] = &route{epoch: epoch, since: sent, read: sent, why: why}
	case at.epoch == epoch && sent.After(at.read):
		at.read = sent
	}
	delete(r.forced, key)
	r.n.Store(int64(len(r.away)))
}

// comeBack forgets a key that has left the cluster, unless it has moved there again in a later
// epoch.
func (r *routes) comeBack(key string, epoch int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.away[key]; at != nil && at.epoch <= epoch {
		delete(r.away, key)
		r.returned[key] = now
	}
	r.n.Store(int64(len(r.away)))
}

// takenBack returns when this process first found a key to be taken back by force in this epoch.
func (r *routes) takenBack(row lease.Record) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if epoch := lease.Epoch(row.Token); r.forced[row.Key].epoch != epoch {
		r.forced[row.Key] = route{epoch: epoch, since: time.Now()}
	}
	return r.forced[row.Key].since
}

// with calls f with a key's route, if it has one.
func (r *routes) with(key string, f func(*route)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.away[key]; at != nil {
		f(at)
	}
}

// snapshot copies the routes.
func (r *routes) snapshot() map[string]route {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make(map[string]route, len(r.away))
	for key, at := range r.away {
		out[key] = *at
	}
	return out
}

func (r *routes) keys() []string { return slices.Sorted(maps.Keys(r.snapshot())) }

// returns copies when keys came back, and forgets what is older than MinStay.
func (r *routes) returns(now time.Time) map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.returned, func(_ string, since time.Time) bool {
		return now.Sub(since) > r.cfg.Heat.MinStay
	})
	return maps.Clone(r.returned)
}

// rows reads the rows of keys, and notes nothing.
func (r *routes) rows(ctx context.Context, keys []string) (map[string]lease.Record, error) {
	records, err := r.table.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return nil, err
	}
	rows := make(map[string]lease.Record, len(records))
	for _, row := range records {
		rows[row.Key] = row
	}
	return rows, nil
}

const foundInRow = "its row said so"

// read reads the rows of keys, and notes where the keys are.
func (r *routes) read(ctx context.Context, keys []string, why string) (map[string]lease.Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	sent := time.Now()
	rows, err := r.rows(ctx, keys)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if row := rows[key]; row.Err != nil {
			continue // it says nothing of where its key is
		} else if row.Placement == r.cfg.Placement {
			r.leave(key, lease.Epoch(row.Token), sent, why)
		} else {
			r.comeBack(key, lease.Epoch(row.Token), sent)
		}
	}
	return rows, nil
}

// locate reads where a key is. A key at a placement that is neither the table nor this cluster is
// an error.
func (r *routes) locate(ctx context.Context, key string) (lease.Record, error) {
	rows, err := r.read(ctx, []string{key}, foundInRow)
	row := rows[key]
	switch {
	case err != nil:
		return row, fmt.Errorf("rowlock: bridge: read the placement of %q: %w", key, err)
	case row.Err != nil:
		return row, fmt.Errorf("rowlock: bridge: read the placement of %q: %w", key, row.Err)
	case row.Placement == lease.PlacementTable, row.Placement == r.cfg.Placement, row.Placement == returning:
		return row, nil
	}
	return row, fmt.Errorf("%w: %q is at placement %d; this bridge's is %d", lease.ErrMoved, key, row.Placement,
		r.cfg.Placement)
}
