package table

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// RehearsePass passes a lease on, as an opening does.
func (s *Store) RehearsePass(ctx context.Context, held lease.Lease, next lease.Ticket) (lease.Token, error) {
	return s.rehearsePass(ctx, held, next)
}

// RehearseReap is the end of the rehearsal of an opening.
func (s *Store) RehearseReap(ctx context.Context, key string) error {
	return s.rehearseReap(ctx, key, Options{})
}

// Fencing is what a forced release does after it has waited in vain for the row.
func (s *Store) Fencing(ctx context.Context, r lease.ForceRequest, waited time.Duration) (bool, error) {
	return s.fencing(ctx, r, waited, lease.ErrBusy)
}
