package paxosbridge

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Fence checks a lease in the caller's transaction, whichever store granted it. For a lease of the
// cluster the row must be away in the token's epoch, and keeps the token. From then on no older
// token passes, so that the data are as safe as with a key that never moved. The row cannot keep
// such a key from being taken in the cluster: the next holder's Fence waits at the row until tx
// ends.
func (b *Bridge) Fence(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if isAway(l.Token) {
		return b.table.FenceAt(ctx, tx, b.cfg.Placement, l)
	}
	return b.table.Fence(ctx, tx, l)
}

// FenceRenew is Fence. It also extends a lease of the table, if the table can do that. A lease of
// the cluster is renewed in the cluster, where no transaction blocks it.
func (b *Bridge) FenceRenew(ctx context.Context, tx lease.Runner, r lease.RenewRequest) error {
	if renewer, ok := adapter.As[lease.RenewingFencer](b.table); ok && !isAway(r.Token) {
		return renewer.FenceRenew(ctx, tx, r)
	}
	return b.Fence(ctx, tx, r.Lease)
}

// ReleaseTx releases a lease of the table in the caller's transaction. It cannot release a lease of
// the cluster, and returns [lease.ErrUnsupported].
func (b *Bridge) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if isAway(l.Token) {
		return fmt.Errorf("%w: %q is in the cluster, which takes no part in the transaction: "+
			"Fence, commit, and then Unlock", lease.ErrUnsupported, l.Key)
	}
	return b.table.ReleaseTx(ctx, tx, l)
}
