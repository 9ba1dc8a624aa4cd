// Package allkeys checks a call that acquires several keys or none, for stores.
package allkeys

import (
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Check returns an error for requests that every store refuses: each that Acquire would refuse, and
// two for one key. It wraps lease.ErrConfig or lease.ErrInvalidKey.
func Check(reqs []lease.AcquireRequest) error {
	seen := make(map[string]bool, len(reqs))
	for i := range reqs {
		r := &reqs[i]
		if err := r.Check(); err != nil {
			return err
		}
		if seen[r.Key] {
			return fmt.Errorf("%w: acquire all: %q comes twice; ask for each key once", lease.ErrConfig, r.Key)
		}
		seen[r.Key] = true
	}
	return nil
}
