package paxosbridge

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// KeyState is what this process knows of a key that is in the cluster, or is hot.
type KeyState struct {
	Key string
	// Home is HomeTable or Config.Home.
	Home  int
	Epoch int64 // 0 for what is in the table
	// Rate is how many bids, looks of waiters and hand-overs a second it has had in this process of late.
	Rate float64
	// Since is since when this process has known that it is in the cluster; zero for what is in the table.
	Since time.Time
	// Why is what moved it.
	Why string
	// Busy says that somebody held it when it was last looked at.
	Busy bool
	// Err is why the cluster did not answer the last time it was asked for the key; nil if it did. Such a key cannot be locked until the
	// cluster is back, or the key is taken back by force.
	Err error
}

// State lists the keys in the cluster, and those in the table whose rate is at least Config.Cool, the hottest first.
func (b *Bridge) State() []KeyState {
	now := time.Now()
	var out []KeyState
	b.routes.mu.RLock()
	for key, r := range b.routes.away {
		out = append(out, KeyState{Key: key, Home: b.cfg.Home, Epoch: r.epoch, Since: r.since, Why: r.why, Busy: r.busy, Err: r.err})
	}
	b.routes.mu.RUnlock()
	away := make(map[string]bool, len(out))
	for i := range out {
		away[out[i].Key] = true
		out[i].Rate = b.heat.rate(now, out[i].Key)
	}
	for _, w := range b.heat.above(now, b.cfg.Cool) {
		if !away[w.key] {
			out = append(out, KeyState{Key: w.key, Rate: w.rate})
		}
	}
	slices.SortFunc(out, func(a, b KeyState) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Key, b.Key))
	})
	return out
}

func (r *routes) sights() map[string]sight {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make(map[string]sight, len(r.away))
	for key, at := range r.away {
		out[key] = sight{since: at.since, busy: at.busy || at.err != nil}
	}
	return out
}

// lastStays forgets what no longer matters.
func (r *routes) lastStays(now time.Time, d time.Duration) map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.stayed, func(_ string, since time.Time) bool { return now.Sub(since) > d })
	return maps.Clone(r.stayed)
}

// observe looks which keys in the cluster are held: of other processes' bids nothing else is known here, and a key that is hot there is
// nearly always held.
func (b *Bridge) observe(ctx context.Context) {
	keys := b.routes.keys()
	if len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.MoveTimeout)
	defer cancel()
	records, err := b.cluster.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	held := make(map[string]bool, len(records))
	for _, r := range records {
		held[r.Key] = r.Held
	}
	for _, key := range keys {
		b.routes.with(key, func(r *route) { r.busy, r.err = held[key], err })
	}
}
