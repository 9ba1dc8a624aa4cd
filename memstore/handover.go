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
