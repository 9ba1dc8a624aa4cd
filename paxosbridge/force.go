package paxosbridge

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// ForceReturn takes a key back from a cluster that is lost for good, without asking it. It needs
// Config.Delegation in every process, and returns when the key can be locked in the table: a little
// later than Delegation. If it is interrupted, or if this process dies, a request for the key or an
// audit completes it, Delegation after its own process has first read that the key is taken back.
//
// A holder of the key in the cluster loses it. Only clocks keep two holders apart here, as they do
// whenever a lease expires: the holder's clock may be slower than the database's, and than that of
// the process which completes the return, by up to a tenth. Tokens and Fence need no clock: from
// the first moment on a fence refuses the old holder's token. A database that forgets the return
// leaves the key in the cluster, with tokens below the table's.
func (m *mover) ForceReturn(ctx context.Context, key string) error {
	if err := isnil.Context("ForceReturn", ctx); err != nil {
		return err
	}
	if m.cfg.Delegation == 0 {
		return fmt.Errorf("%w: bridge: ForceReturn %q needs Config.Delegation, because that bounds how long other "+
			"processes rely on what they have read", lease.ErrConfig, key)
	}
	for {
		row, err := m.routes.locate(ctx, key)
		if err != nil || row.Placement == lease.PlacementTable {
			return err
		}
		epoch := lease.Epoch(row.Token)
		if row.Placement == m.cfg.Placement || epoch%2 == 0 { // also if it has moved out again
			// First to the next epoch: that of a key which comes home meanwhile, so that its holder
			// there keeps it. Then to an odd one, because that is never the table's.
			if _, err := m.table.Recall(ctx, key, returning, epoch+1); err != nil {
				return err
			}
			continue
		}
		if _, err := m.finishForce(ctx, row); err != nil {
			return err
		}
		wait := m.untilBack(row)
		select {
		case <-time.After(min(wait, m.cfg.Refresh)):
		case <-ctx.Done():
			return fmt.Errorf("rowlock: bridge: %q will be back in the table in %s: %w",
				key, wait.Round(time.Millisecond), ctx.Err())
		}
	}
}

// untilBack returns how long a key that is being taken back must still wait: by the database's
// clock since the recall, and by this process's since it found the key so, because until then a
// commit that waits for a standby let others read the row as before. After the wait every process
// has read that the key has left the cluster, or has dropped what it held there.
func (m *mover) untilBack(row lease.Record) time.Duration {
	all := m.cfg.Delegation + min(m.cfg.Delegation/10, math.MaxInt64-m.cfg.Delegation)
	// Remaining counts from the recall, and is negative.
	return max(0, all+min(row.Remaining, 0), all-time.Since(m.routes.takenBack(row)))
}

// finishForce brings a key back to the table once its wait is over. Without Delegation that cannot
// be known.
func (m *mover) finishForce(ctx context.Context, row lease.Record) (back bool, err error) {
	if m.cfg.Delegation == 0 || m.untilBack(row) > 0 {
		return false, nil
	}
	epoch := lease.Epoch(row.Token)
	if epoch%2 == 0 { // see ForceReturn; the wait begins anew, lest a failover have forgotten it
		_, err = m.table.Recall(ctx, row.Key, returning, epoch+1)
		return false, err
	}
	ok, err := m.table.Return(ctx, row.Key, returning, epoch)
	if ok {
		m.report.moved(ctx, row.Key, lease.PlacementTable, epoch+1, "taken back by force")
	}
	return err == nil, err
}
