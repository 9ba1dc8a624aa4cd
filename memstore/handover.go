package memstore

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Passer = (*Store)(nil)

// HandOver grants leases to their next owners. See [lease.Passer].
func (s *Store) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	return each(ctx, s, items, s.handOverLocked)
}

func (s *Store) handOverLocked(now time.Time, h lease.HandOver) lease.Acquired {
	if err := h.Check(); err != nil {
		return lease.Acquired{Err: err}
	}
	r := s.rows[h.From.Key]
	switch {
	case r != nil && r.owner == h.To.Owner && r.held(now):
		return lease.Acquired{Granted: true, Token: r.token}
	case r == nil || !r.names(h.From) || r.token >= lease.MaxToken-1:
		return lease.Acquired{}
	}
	r.owner, r.note, r.token = h.To.Owner, h.To.Note, r.token+1
	r.granted, r.expires = now, now.Add(h.To.TTL)
	return lease.Acquired{Granted: true, Token: r.token}
}

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
