package forupdate

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// Release clears the rows and ends the transactions. It can also release a lock that another store
// has taken, as an operator does. That store notices within a quarter of a second; Release waits
// for it, for half a second at most.
func (s *Store) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	out := make([]lease.Released, len(leases))
	for i, l := range leases {
		out[i] = s.release(ctx, l)
	}
	if len(out) == 1 {
		return out, out[0].Err
	}
	return out, nil
}

// release clears the row first. In the other order the next taker would find a row that names a
// holder without a transaction, which is what a crash leaves. After an error the transaction stays,
// for a second try; in the end the server's idle timeout ends it.
func (s *Store) release(ctx context.Context, l lease.Lease) lease.Released {
	if err := s.check("release", l.Key); err != nil {
		return lease.Released{Err: err}
	}
	h := s.mine(l)
	answers, err := s.rows.Release(ctx, []lease.Lease{l})
	if err != nil {
		return lease.Released{Err: err}
	}
	switch {
	case h != nil:
		_, held := s.of(l.Key)
		if held.Owner == l.Owner {
			s.let(ctx, h, held, false)
		}
	case !answers[0].Gone:
		s.waitUntilFree(ctx, l.Key)
	}
	return answers[0]
}

// waitUntilFree waits until the transaction of another store has unlocked a key whose row was
// released.
func (s *Store) waitUntilFree(ctx context.Context, key string) {
	for began := time.Now(); time.Since(began) < 2*s.look; {
		if free, err := s.keys.free(ctx, []string{key}); err != nil || free[key] {
			return
		}
		if rows, err := s.rows.Inspect(ctx, lease.Filter{Keys: []string{key}}); err != nil ||
			len(rows) == 0 || rows[0].Held {
			return // another has it already
		}
		if !retry.Sleep(ctx, s.look/20) {
			return
		}
	}
}
