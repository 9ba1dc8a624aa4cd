package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Mover = (*Store)(nil)

// Depart moves a held key to another placement. See [lease.Mover].
func (s *Store) Depart(ctx context.Context, l lease.Lease, placement int) (epoch int64, ok bool, err error) {
	epoch = lease.Epoch(l.Token) + 1
	ok, err = s.move(ctx, func(now time.Time) bool {
		r := s.rows[l.Key]
		return r != nil && r.placement == lease.PlacementTable && r.names(l) && r.to(now, placement, epoch)
	})
	return epoch, ok, err
}

// Return takes a key back. See [lease.Mover].
func (s *Store) Return(ctx context.Context, key string, placement int, epoch int64) (ok bool, err error) {
	return s.move(ctx, func(now time.Time) bool {
		r := s.rows[key]
		return r != nil && r.placement == placement && lease.Epoch(r.token) == epoch && r.to(now, lease.PlacementTable, epoch+1)
	})
}

// Recall raises the epoch. See [lease.Mover].
func (s *Store) Recall(ctx context.Context, key string, placement int, epoch int64) (ok bool, err error) {
	return s.move(ctx, func(now time.Time) bool {
		r := s.rows[key]
		floor := s.floors[lease.Bucket(key)]
		if r == nil && placement != lease.PlacementTable && floor >= lease.EpochStart(epoch) {
			return false // the row may have come back since, and been swept
		}
		if r == nil {
			r = &row{granted: now}
			s.rows[key] = r
			r.to(now, placement, epoch)
			if placement == lease.PlacementTable {
				r.token = max(r.token, floor)
			}
			return true
		}
		return lease.Epoch(r.token) < epoch && r.to(now, placement, epoch)
	})
}

// Confirm reports whether a key is at a placement. See [lease.Mover].
func (s *Store) Confirm(ctx context.Context, key string, placement int, epoch int64) (ok bool, err error) {
	return s.move(ctx, func(time.Time) bool {
		r := s.rows[key]
		return r != nil && r.placement == placement && lease.Epoch(r.token) == epoch
	})
}

func (s *Store) move(ctx context.Context, do func(now time.Time) bool) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return do(time.Now()), nil
}

func (r *row) to(now time.Time, placement int, epoch int64) bool {
	r.placement, r.token = placement, lease.EpochStart(epoch)
	r.owner, r.note, r.expires = lease.Owner{}, "", now
	return true
}

// FenceAt checks the row, without a transaction, because there is none in memory. See
// [lease.Mover].
func (s *Store) FenceAt(ctx context.Context, _ lease.Runner, placement int, l lease.Lease) error {
	ok, err := s.move(ctx, func(time.Time) bool {
		r := s.rows[l.Key]
		fits := r != nil && r.placement == placement && lease.Epoch(r.token) == lease.Epoch(l.Token) && r.token <= l.Token
		if fits {
			r.token = l.Token
		}
		return fits
	})
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", lease.ErrFenced, l.Key)
	}
	return err
}

// Forget loses key's row, as a database does that fails over to a replica without it. For tests.
func (s *Store) Forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, key)
}

// RaiseFloor raises the floor of key's bucket, as a sweep of another key does. For tests.
func (s *Store) RaiseFloor(key string, floor lease.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &s.floors[lease.Bucket(key)]
	*at = max(*at, floor)
}
