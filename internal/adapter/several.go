package adapter

import (
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// CheckAll returns an error for requests that every store refuses: each that Acquire would refuse,
// and two for one key. It wraps lease.ErrConfig or lease.ErrInvalidKey.
func CheckAll(reqs []lease.AcquireRequest) error { return checkEach("acquire all", reqs) }

// CheckAny is CheckAll for a call that wants n of the keys. It also refuses an n that is less than
// 1 or more than there are requests.
func CheckAny(reqs []lease.AcquireRequest, n int) error {
	if n < 1 || n > len(reqs) {
		return fmt.Errorf("%w: acquire any: %d of %d keys; ask for at least one and for at most all",
			lease.ErrConfig, n, len(reqs))
	}
	return checkEach("acquire any", reqs)
}

func checkEach(what string, reqs []lease.AcquireRequest) error {
	seen := make(map[string]bool, len(reqs))
	for i := range reqs {
		r := &reqs[i]
		if err := r.Check(); err != nil {
			return err
		}
		if seen[r.Key] {
			return fmt.Errorf("%w: %s: %q comes twice; ask for each key once", lease.ErrConfig, what, r.Key)
		}
		seen[r.Key] = true
	}
	return nil
}
