package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var errShared = fmt.Errorf("%w: keys of a bridge cannot be shared: a cluster knows no members",
	lease.ErrUnsupported)

// Share refuses: a client would otherwise find the ability in the table beneath, and share a key
// that is about to move.
func (b *Bridge) Share(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) {
	return nil, errShared
}

// Downgrade refuses, as Share does.
func (b *Bridge) Downgrade(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
	return nil, errShared
}

// Wish has no effect: no client shares a key through a bridge.
func (b *Bridge) Wish(context.Context, lease.Owner, []string, time.Duration) error { return nil }
