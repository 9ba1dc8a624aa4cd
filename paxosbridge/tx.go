package paxosbridge

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// Fence checks a lease in the caller's transaction, wherever it was granted. For one that the cluster has granted the row must be away in
// the token's epoch, and keeps the token: from then on no older one passes, so that the data are as safe as with a key that never
// moved. What the row cannot do for such a key is to keep it from being taken in the cluster: whoever takes it waits at the row
// until tx ends.
func (b *Bridge) Fence(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if isAway(l.Token) {
		return b.table.FenceAt(ctx, tx, b.cfg.Home, l)
	}
	return b.table.Fence(ctx, tx, l)
}

// FenceRenew is Fence. A lease of the table is extended as well if the table can do that. One of the cluster is renewed in the cluster,
// where no transaction is in the way.
func (b *Bridge) FenceRenew(ctx context.Context, tx lease.Runner, r lease.RenewRequest) error {
	if renewer, ok := seam.As[lease.RenewingFencer](b.table); ok && !isAway(r.Token) {
		return renewer.FenceRenew(ctx, tx, r)
	}
	return b.Fence(ctx, tx, r.Lease)
}

// ReleaseTx releases a lease of the table in the caller's transaction. A lease of the cluster cannot be.
func (b *Bridge) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if isAway(l.Token) {
		return fmt.Errorf("%w: %q is in the cluster, which knows nothing of the transaction: Fence, commit, and then Unlock", lease.ErrUnsupported, l.Key)
	}
	return b.table.ReleaseTx(ctx, tx, l)
}

// Sweep sweeps the table, which leaves alone what has moved. Records of the cluster are kept for ever: they are what refuses the late.
func (b *Bridge) Sweep(ctx context.Context, opts lease.SweepOptions) (removed int64, err error) {
	return b.table.Sweep(ctx, opts)
}

// Reaches reports whether a key of this home is the bridge's.
func (b *Bridge) Reaches(home int) bool { return home == b.cfg.Home }
