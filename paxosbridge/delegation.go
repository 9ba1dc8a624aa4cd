package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// hold is for how long the cluster is asked to hold a key.
type hold struct {
	key string
	ttl time.Duration
}

// refusals returns a function that says why a request must not be sent to the cluster, or nil: with
// Delegation no lease of the cluster ends later than Delegation after its key's row was read. It
// reads the rows that were read too long ago, so that the routes of all other keys are current.
func refusals[Q any](ctx context.Context, r *routes, reqs []Q, holdOf func(Q) hold) func(Q) error {
	refused := make(map[hold]error)
	var stale []hold
	if r.cfg.Delegation > 0 {
		for _, q := range reqs {
			switch h := holdOf(q); {
			case h.ttl > r.cfg.Delegation:
				refused[h] = fmt.Errorf(
					"%w: bridge: the TTL of %q is %s, above Config.Delegation (%s): "+
						"raise Delegation or lower the TTL",
					lease.ErrConfig, h.key, h.ttl, r.cfg.Delegation,
				)
			case r.isStale(h):
				stale = append(stale, h)
			}
		}
		r.revalidate(ctx, stale, refused)
	}
	return func(q Q) error { return refused[holdOf(q)] }
}

func (r *routes) isStale(h hold) bool {
	stale := true
	r.with(h.key, func(at *route) { stale = time.Since(at.read) > r.cfg.Delegation-h.ttl })
	return stale
}

// revalidate reads the rows. A key without a row is refused, because nothing has confirmed that it
// is in the cluster.
func (r *routes) revalidate(ctx context.Context, stale []hold, refused map[hold]error) {
	keys := make([]string, len(stale))
	for i, h := range stale {
		keys[i] = h.key
	}
	rows, err := r.read(ctx, keys, foundInRow)
	for _, h := range stale {
		if _, ok := rows[h.key]; err != nil {
			refused[h] = fmt.Errorf("rowlock: bridge: the cluster must not hold %q until the "+
				"database confirms that the key is there: %w", h.key, err)
		} else if !ok {
			refused[h] = fmt.Errorf("%w: %q has no row, so nothing confirms that it is in the "+
				"cluster; an audit resolves that", lease.ErrBusy, h.key)
		}
	}
}
