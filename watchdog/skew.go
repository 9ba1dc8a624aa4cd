package watchdog

import (
	"container/heap"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// skew remembers one pair of readings: the store's clock, and when on ours the request that brought it was sent.
type skew struct {
	store time.Duration
	sent  time.Time
}

// read takes the next pair and returns by how much the store's clock has surely run ahead since the last: more than the
// longest time that can have passed between the two readings, which is from the first request's sending to the second's
// reply.
func (s *skew) read(store time.Duration, sent, received time.Time) (ahead time.Duration) {
	if s.store != 0 {
		ahead = (store - s.store) - received.Sub(s.sent)
	}
	s.store, s.sent = store, sent
	return ahead
}

// adjust looks at the store's clock in a renewal's answers. If it ran ahead by more than tolerated, the store's expiry of
// every lease has come nearer by as much, so every deadline does, and every lease is due at once.
func (d *Dog) adjust(tolerated time.Duration, sent, received time.Time, answers []lease.Renewed) time.Duration {
	for _, a := range answers {
		if a.Err != nil || a.Clock == 0 {
			continue
		}
		ahead := d.clock.read(a.Clock, sent, received)
		if ahead <= tolerated {
			return 0
		}
		for _, h := range d.queue {
			h.deadline = h.deadline.Add(-ahead)
			if h.Every > 0 && !h.flying {
				h.due = earliest(h.due, received)
			}
			h.schedule()
		}
		heap.Init(&d.queue)
		return ahead
	}
	return 0
}
