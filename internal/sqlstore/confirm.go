package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// FoundError is returned by an Acquire or a Claim that has read the row to be the requester's
// already, and has written nothing. That is no grant yet, because a read proves nothing about
// durability: a commit that waits for a synchronous standby becomes visible when its wait is
// cancelled, and is then on this server alone. The store confirms the lease before it reports it.
type FoundError struct{ Token lease.Token }

// Error says what was found.
func (e FoundError) Error() string {
	return fmt.Sprintf(
		"the row names the requester with token %d, as was read; no commit of it was acknowledged",
		e.Token)
}

// Confirm writes to the row of a lease that was read. Once that is committed and acknowledged, so
// is everything that stands before it in the server's log: the grant that was read, and every other
// one that was read before. ok is false if the row does not name the lease, or if it has expired.
// The lease then lasts for at least ttl from now; a ttl of 0 extends it by the clock's resolution.
//
// Confirm is no renewal, because a renewal can shorten a lease, skips a locked row, and need not
// change a row whose expiry is right.
func Confirm(ctx context.Context, s *conn.Session, d Texts, l lease.Lease, ttl time.Duration) (
	ok bool, err error,
) {
	return changedOne(ctx, s, d, "confirm", conn.Micros(ttl), []byte(l.Key), conn.Bytes(l.Owner), l.Token)
}

// Placement is where a key lives: in the table or in a cluster, in an epoch.
type Placement struct {
	Placement int
	Epoch     int64
}

// ConfirmPlacement is Confirm for a key that was read to live there.
func ConfirmPlacement(ctx context.Context, s *conn.Session, d Texts, key string, at Placement) (
	ok bool, err error,
) {
	return changedOne(ctx, s, d, "confirm-placement", []byte(key), at.Placement, lease.EpochStart(at.Epoch),
		lease.EpochStart(at.Epoch+1))
}

// changedOne runs a section that changes a column of the one row it names. An error leaves the
// outcome unknown, also of what was read, even if this statement was certainly not applied.
func changedOne(ctx context.Context, s *conn.Session, d Texts, section string, args ...any) (
	bool, error,
) {
	n, err := s.Change(ctx, d.Text(section), args...)
	if err != nil {
		return false, conn.Unsettled{Err: err, Committing: true}
	}
	return n == 1, nil
}
