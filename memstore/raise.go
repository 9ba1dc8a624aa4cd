package memstore

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Raiser = (*Store)(nil)

// Raise gives leases larger tokens. See [lease.Raiser].
func (s *Store) Raise(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
	return each(ctx, s, reqs, s.raiseLocked)
}

func (s *Store) raiseLocked(now time.Time, q lease.RaiseRequest) lease.Raised {
	if err := q.Check(); err != nil {
		return lease.Raised{Err: err}
	}
	r := s.rows[q.Key]
	again := lease.Lease{Key: q.Key, Owner: q.Owner, Token: q.To}
	if r == nil || r.placement != lease.PlacementTable || !r.held(now) || !r.names(q.Lease) && !r.names(again) {
		return lease.Raised{Gone: true}
	}
	r.token = q.To
	return lease.Raised{}
}
