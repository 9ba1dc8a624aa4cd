package seam

import (
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Forces returns what takes leases away, or an error that wraps lease.ErrUnsupported.
func (s *Store) Forces() (lease.ForceReleaser, error) {
	if s.forcer == nil {
		return nil, fmt.Errorf("%w: ForceRelease needs a store that keeps a record of it "+
			"(lease.ForceReleaser)", lease.ErrUnsupported)
	}
	return s.forcer, nil
}
