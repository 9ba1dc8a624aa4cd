package forupdate

import (
	"context"
	"slices"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// noToken is a token that no row has. A renewal under it is answered lost, with the store's clock.
const noToken = -1

// Renew proves that each lock's transaction is still there, by a statement on its own connection,
// all concurrently and for no longer than proofTimeout or a quarter of the TTL. Then it extends the
// rows of those in one batch. A lock whose transaction is gone is lost, and its row is cleared.
//
// It can also renew a lock that another store holds. It cannot ask that store's transaction, and
// takes it as alive if the key's row is locked while rowlock's row names the lease.
func (s *Store) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	if err := s.check("renew", reqs[0].Key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, unsent("renew", reqs[0].Key, err)
	}
	ours := make([]*hold, len(reqs))
	var foreign []string
	for i, r := range reqs {
		if h, held := s.of(r.Key); h != nil && held == r.Lease {
			ours[i] = h
		} else {
			foreign = append(foreign, r.Key)
		}
	}
	free, err := s.keys.free(ctx, foreign)
	if err != nil {
		return nil, err
	}
	dead := s.proveAll(ctx, ours, reqs)
	asked := slices.Clone(reqs)
	for i, r := range reqs {
		if dead[i] || ours[i] == nil && free[r.Key] {
			asked[i].Token = noToken
		}
	}
	out, err := s.rows.Renew(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if ours[i] != nil && out[i].Err == nil && out[i].Outcome == lease.Lost {
			s.let(ctx, ours[i], reqs[i].Lease, dead[i])
		}
	}
	return out, nil
}

// clear clears the row of a lost lock, if that takes no longer than a moment: otherwise the next
// taker does it, because the renewals of other locks wait for this one.
func (s *Store) clear(ctx context.Context, l lease.Lease) {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	_, _ = s.evict(ctx, l)
}

// proveAll reports which holds are dead, and clears their rows, so that waiters see it.
func (s *Store) proveAll(ctx context.Context, ours []*hold, reqs []lease.RenewRequest) (dead []bool) {
	dead = make([]bool, len(reqs))
	var all sync.WaitGroup
	for i, h := range ours {
		if h == nil {
			continue
		}
		all.Go(func() {
			if dead[i] = !s.prove(ctx, h, reqs[i].Key, reqs[i].TTL); dead[i] {
				s.let(ctx, h, reqs[i].Lease, true)
				s.clear(ctx, reqs[i].Lease)
			}
		})
	}
	all.Wait()
	return dead
}
