package paxosbridge

import (
	"cmp"
	"slices"
	"time"
)

// KeyState is what this process knows of a key that is in the cluster, or is hot.
type KeyState struct {
	Key string
	// Placement is PlacementTable or Config.Placement.
	Placement int
	Epoch     int64 // 0 for a key in the table
	// Rate is the key's recent attempts, polls of waiters and hand-overs per second here.
	Rate float64
	// Since is when this process first knew that the key is in the cluster; zero for a key in the
	// table.
	Since time.Time
	// Why is the reason for its move.
	Why string
	// Busy says that the key was held at the last poll.
	Busy bool
	// Err is why the cluster did not answer the last request for the key; nil if it did. Such a key
	// cannot be locked until the cluster is back, or the key is taken back by force.
	Err error
}

// State lists the keys in the cluster, and those in the table whose rate is at least Heat.Cool,
// the hottest first.
func (b *Bridge) State() []KeyState {
	now := time.Now()
	var out []KeyState
	away := b.routes.snapshot()
	for key, r := range away {
		out = append(out, KeyState{
			Key: key, Placement: b.cfg.Placement, Epoch: r.epoch, Rate: b.heat.Rate(now, key),
			Since: r.since, Why: r.why, Busy: r.held, Err: r.err,
		})
	}
	for _, k := range b.heat.Above(now, b.cfg.Heat.Cool) {
		if _, ok := away[k.Key]; !ok {
			out = append(out, KeyState{Key: k.Key, Rate: k.Rate})
		}
	}
	slices.SortFunc(out, func(a, b KeyState) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Key, b.Key))
	})
	return out
}
