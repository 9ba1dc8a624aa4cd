package paxosbridge

import (
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.SyncRequirer = (*Bridge)(nil)

// RequiresSync reports whether the table does. A cluster answers when a majority has a grant.
func (b *Bridge) RequiresSync() bool {
	s, ok := seam.As[lease.SyncRequirer](b.table)
	return ok && s.RequiresSync()
}
