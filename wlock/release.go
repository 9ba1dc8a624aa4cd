package wlock

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// brief is how long a lock lasts that is only acquired to be released.
const brief = time.Second

func (s *Store) release(ctx context.Context, l lease.Lease) (lease.Released, error) {
	if lease.CheckStoredKey(l.Key) != nil || l.Owner.IsZero() {
		return lease.Released{Gone: true}, lease.CheckStoredKey(l.Key)
	}
	e, err := s.enter(ctx, attempt{l.Key, l.Owner})
	if err != nil {
		return lease.Released{}, err
	}
	defer s.leave(e)
	named := l.Token == 0 || l.Token == e.first
	switch {
	case !e.released && named:
		s.ends(e)
		freed, err := s.free(ctx, e)
		return lease.Released{Gone: !freed}, err
	case !e.released:
		return lease.Released{Gone: true}, nil
	case l.Token == 0 && time.Now().Before(e.strays):
		_, err := s.retake(ctx, e)
		return lease.Released{}, err
	}
	return s.releaseForeign(ctx, e, l.Token)
}

// free releases the newest token. If the owner has another, a try was carried out late, and its
// token is asked for.
func (s *Store) free(ctx context.Context, e *entry) (freed bool, err error) {
	freed, own, err := s.c.ReleaseLock(ctx, e.lock(e.newest))
	if err != nil {
		return false, err
	}
	if own {
		freed, err = s.retake(ctx, e)
	}
	e.released = err == nil
	return freed, err
}

// retake acquires for a moment what a late try may have left, and releases it.
func (s *Store) retake(ctx context.Context, e *entry) (freed bool, err error) {
	for range 3 {
		g, err := s.c.TryLock(ctx, s.ask(e, brief))
		if g.Unknown || errors.Is(err, lease.ErrUnknown) {
			s.stray(e, brief)
		}
		switch {
		case errors.Is(err, ErrRefused):
			return false, nil
		case err != nil:
			return false, err
		}
		e.newest = g.Token
		freed, own, err := s.c.ReleaseLock(ctx, e.lock(g.Token))
		if err != nil || !own {
			return freed, err
		}
	}
	return false, lease.ErrUnknown
}

// releaseForeign is for a lease that this process has not acquired, or has forgotten.
func (s *Store) releaseForeign(ctx context.Context, e *entry, token lease.Token) (lease.Released, error) {
	if token == 0 {
		found, held, err := s.c.See(ctx, e.lock(0))
		if err != nil || !held || found.Owner != e.owner {
			return lease.Released{Gone: true}, err
		}
		token = found.Token
	}
	freed, _, err := s.c.ReleaseLock(ctx, e.lock(token))
	return lease.Released{Gone: !freed}, err
}
