package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Sweep removes rows that have been dead for at least the retention. See [lease.Sweeper].
func (s *Store) Sweep(ctx context.Context, opts lease.SweepOptions) (removed int64, err error) {
	for err = cmp.Or(opts.Check(), ctx.Err()); err == nil; err = pause(ctx, opts.Pause) {
		n := s.sweepBatch(opts)
		removed += int64(n)
		if opts.Batch <= 0 || n < opts.Batch {
			break
		}
	}
	return removed, err
}

// sweepBatch removes at most one batch of dead rows. It raises the floor before a row goes, so that
// the key's next row continues above it.
func (s *Store) sweepBatch(opts lease.SweepOptions) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, n := time.Now(), 0
	s.sweepTickets(now, opts.Retention)
	s.sweepChains(now, opts.Retention)
	s.sweepIntents(now, opts.Retention)
	for _, key := range slices.Sorted(maps.Keys(s.rows)) {
		if opts.Batch > 0 && n == opts.Batch {
			break
		}
		r := s.rows[key]
		if r.placement != lease.PlacementTable || r.held(now) || now.Sub(r.until()) < opts.Retention {
			continue
		}
		floor := &s.floors[lease.Bucket(key)]
		*floor = max(*floor, r.token)
		delete(s.rows, key)
		n++
	}
	return n
}

// sweepTickets removes all dead tickets. They are not counted, because no key becomes free.
func (s *Store) sweepTickets(now time.Time, retention time.Duration) {
	for key, queue := range s.queues {
		for waiter, t := range queue {
			if now.Sub(t.alive) >= retention {
				s.dropLocked(key, waiter)
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-over.Done()
	return ctx.Err()
}
