package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/heat"
)

// refreshing keeps the routes from being older than Refresh, with one read. Every auditEvery an
// audit replaces that read, because it reads these rows and more; it cannot if the cluster is down.
func (m *mover) refreshing(ctx context.Context) {
	last := time.Now()
	every(ctx, m.cfg.Refresh, func() {
		m.routes.returns(time.Now()) // without deciding, nothing else forgets the old ones
		if time.Since(last) >= auditEvery {
			last = time.Now()
			err := m.auditEra(ctx)
			if err == nil {
				return
			}
			m.cfg.Logger.WarnContext(ctx, "rowlock: bridge: the audit failed", "error", err)
		}
		reading, cancel := context.WithTimeout(ctx, m.cfg.MoveTimeout)
		defer cancel()
		if _, err := m.routes.read(reading, m.routes.keys(), foundInRow); err != nil {
			m.cfg.Logger.WarnContext(
				ctx, "rowlock: bridge: the placements of keys could not be read", "error", err,
			)
		}
	})
}

// deciding moves keys by their heat, one after another, until ctx ends. It does not begin a move
// then.
func (m *mover) deciding(ctx context.Context, heat *heat.Counters) {
	decider := decider{cfg: m.cfg, heat: heat}
	every(ctx, m.cfg.Every, func() {
		m.poll(ctx)
		now := time.Now()
		out, back := decider.decide(now, m.routes.snapshot(), m.routes.returns(now))
		all := func(keys []string, why string, move func(_ context.Context, key, why string) error) {
			for _, key := range keys {
				if ctx.Err() != nil {
					return
				}
				err := move(ctx, key, fmt.Sprintf("%s: %.0f a second", why, heat.Rate(now, key)))
				if err != nil && ctx.Err() == nil {
					m.cfg.Logger.WarnContext(ctx, "rowlock: bridge: a move was not completed",
						"key", key, "error", err)
				}
			}
		}
		all(out, "hot", m.MoveOut)
		all(back, "cool", m.MoveBack)
	})
}

// poll reads which keys in the cluster are held. This process does not know the bids of others, but
// a key that is hot in another process is nearly always held.
func (m *mover) poll(ctx context.Context) {
	keys := m.routes.keys()
	if len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.MoveTimeout)
	defer cancel()
	records, err := m.cluster.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	held := make(map[string]bool, len(records))
	for _, r := range records {
		held[r.Key] = r.Held
	}
	for _, key := range keys {
		m.routes.with(key, func(r *route) { r.held, r.err = held[key], err })
	}
}

// every calls f until ctx ends.
func every(ctx context.Context, d time.Duration, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f()
		}
	}
}
