package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var fenceRenewProperties = []property{
	{"a renewing fence extends the lease when its transaction commits", fenceRenews},
	{"a renewing fence never shortens a lease", fenceShortensNothing},
	{"a renewing fence extends nothing when its transaction rolls back", fenceRollsBack},
	{"a renewal behind a renewing fence is told what is committed", fenceTellsCommitted},
	{"a renewing fence passes for an expired lease and does not revive it", fenceRevivesNothing},
	{"a renewing fence refuses an old term", fenceRenewRefuses},
}

// longer is what these fences renew for: so long that a lease of ttl has less left than is worth a
// write.
const longer = 10 * ttl

func (r *rig) renewingFencer() lease.RenewingFencer {
	r.Helper()
	r.fencer()
	f, ok := r.here.(lease.RenewingFencer)
	if !ok {
		r.Skip("the store is not a lease.RenewingFencer")
	}
	return f
}

func (r *rig) fenceRenew(tx Tx, l lease.Lease) {
	r.Helper()
	if err := r.renewingFencer().FenceRenew(r.ctx, tx, lease.RenewRequest{Lease: l, TTL: longer}); err != nil {
		r.Fatalf("fence %q with token %d: %v", l.Key, l.Token, err)
	}
}

func fenceRenews(r *rig) {
	r.renewingFencer()
	l := r.take("k")
	tx := r.begin()
	r.fenceRenew(tx, l)
	r.commit(tx)
	if row, _ := r.row("k"); row.Remaining < longer/2 {
		r.Errorf("%v remain after a fence that renews for %v", row.Remaining, longer)
	}
	r.wantHeld(l)
}

// fenceShortensNothing fences for less than what is left: what the holder was told before stays
// true.
func fenceShortensNothing(r *rig) {
	f := r.renewingFencer()
	l := r.take("k")
	got, err := sole(r.here.Renew(r.ctx, []lease.RenewRequest{{Lease: l, TTL: longer}}))
	if err != nil || got.Outcome != lease.Extended {
		r.Fatalf("renew: %+v, %v", got, err)
	}
	tx := r.begin()
	if err := f.FenceRenew(r.ctx, tx, lease.RenewRequest{Lease: l, TTL: ttl}); err != nil {
		r.Fatal(err)
	}
	r.commit(tx)
	if row, _ := r.row("k"); row.Remaining < longer/2 {
		r.Errorf("%v remain of %v after a fence that renews for %v", row.Remaining, longer, ttl)
	}
}

func fenceRollsBack(r *rig) {
	r.renewingFencer()
	l := r.take("k")
	tx := r.begin()
	r.fenceRenew(tx, l)
	r.rollback(tx)
	if row, _ := r.row("k"); row.Remaining > ttl {
		r.Errorf("%v remain after a fence that was rolled back, of a lease of %v", row.Remaining, ttl)
	}
	r.wantHeld(l)
}

// fenceTellsCommitted fences twice in one transaction: the second fence can see what the first has
// written, and no renewal may.
func fenceTellsCommitted(r *rig) {
	r.renewingFencer()
	l := r.take("k")
	tx := r.begin()
	for range 2 {
		r.fenceRenew(tx, l)
		got, err := renewOne(r.ctx, r.here, l)
		if err != nil || got.Outcome == lease.Lost {
			r.Errorf("a renewal behind a fence: %+v, %v", got, err)
		}
		if got.Outcome == lease.Busy && (got.Remaining <= 0 || got.Remaining > ttl) {
			r.Errorf("a renewal answers that %v remain, of a lease of %v", got.Remaining, ttl)
		}
	}
	r.rollback(tx)
}

func fenceRevivesNothing(r *rig) {
	r.renewingFencer()
	l := r.take("k")
	r.expire("k")
	tx := r.begin()
	r.fenceRenew(tx, l)
	r.commit(tx)
	if got, err := renewOne(r.ctx, r.here, l); err != nil || got.Outcome != lease.Lost {
		r.Errorf("a renewal of an expired lease that was fenced: %+v, %v, want lost", got, err)
	}
	r.takeAfter(l)
}

func fenceRenewRefuses(r *rig) {
	f := r.renewingFencer()
	first := r.take("k")
	r.expire("k")
	second := r.takeAfter(first)
	tx := r.begin()
	if err := f.FenceRenew(r.ctx, tx, lease.RenewRequest{Lease: first, TTL: longer}); !errors.Is(err, lease.ErrFenced) {
		r.Errorf("fence of an old term: %v, want lease.ErrFenced", err)
	}
	r.rollback(tx)
	r.wantHeld(second)
}

// fencesTakeTurns keeps a transaction open, as one whose COMMIT has not been answered. A second
// transaction of the same holder reads what the first has not committed yet, unless its fence
// waits.
func fencesTakeTurns(r *rig) {
	f := r.fencer()
	r.parallelTx()
	l := r.take("k")
	first, second := r.begin(), r.begin()
	r.fence(first, l)
	ctx, cancel := context.WithTimeout(r.ctx, min(500*time.Millisecond, r.h.limit()/3))
	defer cancel()
	if err := f.Fence(ctx, second, l); err == nil {
		r.Error("a second transaction was fenced while the first was open")
	}
	_ = second.Rollback() // its connection may be gone
	third, fenced := r.begin(), make(chan error, 1)
	go func() { fenced <- f.Fence(r.ctx, third, l) }()
	r.commit(first)
	if err := <-fenced; err != nil && !errors.Is(err, lease.ErrBusy) {
		r.Errorf("a fence that waited for another: %v", err)
	}
	r.rollback(third)
	r.wantHeld(l)
}
