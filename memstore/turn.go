package memstore

import (
	"cmp"
	"time"
)

// place is where a ticket stands in its queue: beside the ticket of that number, which is its own
// unless a tenant's turn has put it behind another.
type place struct {
	rank   time.Duration
	beside int64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.rank, q.rank), cmp.Compare(p.beside, q.beside))
}

// turnLocked returns where a new ticket of a tenant belongs, which by itself would stand at own. A
// round is a ticket and those right behind it, each of another tenant. The ticket goes into the
// first round after its tenant's last one. If none waits, it goes into the round at the head, or
// into the next if that has begun.
func (s *Store) turnLocked(now time.Time, key, tenant string, own place) place {
	var head, last *ticket
	others := false
	for _, t := range s.queues[key] {
		if !now.Before(t.alive) {
			continue
		}
		others = others || t.tenant != tenant
		if head == nil || t.before(head) {
			head = t
		}
		if t.tenant == tenant && (last == nil || last.before(t)) {
			last = t
		}
	}
	switch {
	case tenant == "" || !others:
		return own
	case last == nil && head.beside == head.number:
		return head.place
	case last == nil:
		last = head
	}
	if next := s.afterLocked(now, key, last.place); next != nil {
		return next.place
	}
	own.rank = max(own.rank, last.rank)
	return own
}

// afterLocked returns the first ticket after a round, or nil.
func (s *Store) afterLocked(now time.Time, key string, round place) (next *ticket) {
	for _, t := range s.queues[key] {
		if now.Before(t.alive) && t.compare(round) > 0 && (next == nil || t.before(next)) {
			next = t
		}
	}
	return next
}
