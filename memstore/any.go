package memstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.AnyAcquirer = (*Store)(nil)

// AcquireAny grants n of the keys, the first that are free, or none. See [lease.AnyAcquirer].
func (s *Store) AcquireAny(
	ctx context.Context, reqs []lease.AcquireRequest, n int,
) ([]lease.Acquired, error) {
	if err := cmp.Or(adapter.CheckAny(reqs, n), ctx.Err()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if answers := s.againLocked(now, reqs); answers != nil {
		return whole(answers, n)
	}
	return s.someLocked(now, reqs, n), nil
}

// againLocked answers a request of which an earlier copy was granted, and nil otherwise.
func (s *Store) againLocked(now time.Time, reqs []lease.AcquireRequest) (answers []lease.Acquired) {
	for i, q := range reqs {
		if r := s.rows[q.Key]; r != nil && r.held(now) && r.owner == q.Owner {
			if answers == nil {
				answers = make([]lease.Acquired, len(reqs))
			}
			answers[i] = lease.Acquired{Granted: true, Token: r.token}
		}
	}
	return answers
}

// whole refuses what is left of an earlier grant if that is not n keys.
func whole(answers []lease.Acquired, n int) ([]lease.Acquired, error) {
	granted := 0
	for _, a := range answers {
		if a.Granted {
			granted++
		}
	}
	if granted != n {
		return nil, fmt.Errorf("%w: acquire any: %d of %d keys are left of an earlier try",
			lease.ErrUnknown, granted, n)
	}
	return answers, nil
}

// someLocked grants the first n keys that can be granted, if there are so many.
func (s *Store) someLocked(now time.Time, reqs []lease.AcquireRequest, n int) []lease.Acquired {
	answers := make([]lease.Acquired, len(reqs))
	var free []int
	for i, q := range reqs {
		answer, possible, err := s.tryAllLocked(now, []lease.AcquireRequest{q})
		switch {
		case err != nil:
			answers[i].Err = err
		case possible && len(free) < n:
			free = append(free, i)
		}
		if err == nil {
			answers[i] = answer[0]
		}
	}
	for _, i := range free {
		if len(free) == n {
			answers[i] = s.acquireLocked(now, reqs[i])
		}
	}
	return answers
}
