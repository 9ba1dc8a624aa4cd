package paxosbridge

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/seam"
)

// claim refuses a cluster, or a prefix in it, that belongs to other tables or to another home of
// these. A table that does not know its instance, as one in memory, claims nothing.
func (m *mover) claim(ctx context.Context) error {
	c, can := seam.As[Claimer](m.cluster)
	owner := seam.Claim(m.table, m.cfg.Home)
	if !can || owner == "" {
		return nil
	}
	first, err := c.ClaimFor(ctx, owner)
	if err != nil {
		return fmt.Errorf("rowlock: bridge: claim the cluster: %w", err)
	}
	return seam.CheckClaim(first, owner)
}
