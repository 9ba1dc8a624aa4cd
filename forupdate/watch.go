package forupdate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// watch checks the holds. If a row no longer names its hold (a transaction of the caller's or an
// operator has released it), or has expired, the hold keeps others from a free key, and ends. watch
// asks in one read-only statement, and only while a key is held. It also ends connections that were
// idle for long.
func (s *Store) watch() {
	every := s.look
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-s.hurried:
			every = max(time.Millisecond, s.look/100)
		case <-timer.C:
			every = min(2*every, s.look)
			s.tidy()
			s.conns.retire()
		}
		timer.Reset(every)
	}
}

// hurry has the holds checked soon, because a transaction may be about to release one.
func (s *Store) hurry() {
	select {
	case s.hurried <- struct{}{}:
	default:
	}
}

func (s *Store) tidy() {
	held := make(map[string]lease.Lease)
	s.mu.Lock()
	for key, h := range s.holds {
		held[key] = h.lease
	}
	s.mu.Unlock()
	if len(held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	rows, err := s.rows.Inspect(ctx, lease.Filter{Keys: slices.Collect(maps.Keys(held)), Limit: len(held)})
	if err != nil {
		return
	}
	for _, r := range rows {
		if r.Held && r.Lease == held[r.Key] {
			delete(held, r.Key)
		}
	}
	for key, l := range held {
		if h, _ := s.of(key); h != nil {
			s.let(ctx, h, l, false)
		}
	}
}
