package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var fenceProperties = []property{
	{"a fence passes for the holder, again and again", fencePasses},
	{"a fence refuses an old term, another owner and another token", fenceRefuses},
	{"an expired key cannot be taken while its fence is open", fenceHolds},
	{"a renewal under the holder's own fence is not lost", renewUnderFence},
	{"a transaction of another database is refused", fenceForeign},
}

func (r *rig) fencer() lease.Fencer {
	r.Helper()
	f := able[lease.Fencer](r, r.here)
	if r.h.Begin == nil {
		r.Skip("Harness.Begin is nil")
	}
	return f
}

// begin starts a transaction that is rolled back by the end of the property.
func (r *rig) begin() Tx {
	r.Helper()
	r.there() // while it still can be opened: tx may hold up every write
	tx := r.h.Begin(r.TB, r.here)
	r.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (r *rig) commit(tx Tx) {
	r.Helper()
	if err := tx.Commit(); err != nil {
		r.Fatalf("commit: %v", err)
	}
}

func (r *rig) rollback(tx Tx) {
	r.Helper()
	if err := tx.Rollback(); err != nil {
		r.Fatalf("rollback: %v", err)
	}
}

func (r *rig) fence(tx Tx, l lease.Lease) {
	r.Helper()
	if err := r.fencer().Fence(r.ctx, tx, l); err != nil {
		r.Fatalf("fence %q with token %d: %v", l.Key, l.Token, err)
	}
}

// wantFenced checks in a transaction of its own that the fence refuses l.
func (r *rig) wantFenced(l lease.Lease) {
	r.Helper()
	tx := r.begin()
	if err := r.fencer().Fence(r.ctx, tx, l); !errors.Is(err, lease.ErrFenced) {
		r.Errorf("fence %q with token %d: %v, want lease.ErrFenced", l.Key, l.Token, err)
	}
	r.rollback(tx)
}

func fencePasses(r *rig) {
	r.fencer()
	l := r.take("k")
	for range 3 {
		tx := r.begin()
		r.fence(tx, l)
		r.fence(tx, l)
		r.commit(tx)
	}
	r.wantHeld(l)
}

func fenceRefuses(r *rig) {
	r.fencer()
	r.wantFenced(lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: 1})
	first := r.take("k")
	for _, token := range []lease.Token{0, first.Token - 1, first.Token + 1} {
		r.wantFenced(lease.Lease{Key: "k", Owner: first.Owner, Token: token})
	}
	for _, owner := range []lease.Owner{lease.NewOwner(), {}} {
		r.wantFenced(lease.Lease{Key: "k", Owner: owner, Token: first.Token})
	}
	r.expire("k")
	second := r.takeAfter(first)
	r.wantFenced(first)
	r.wantRelease(second, false)
	r.wantFenced(first)
	r.wantFenced(second)
	r.wantFenced(lease.Lease{Key: "k", Token: second.Token})
}

// fenceHolds expires the lease before it fences, because a store cannot always write to the row
// afterwards. The fence checks owner and token only, so it passes as long as no other owner took
// the key; and from then on none can.
func fenceHolds(r *rig) {
	r.fencer()
	for _, end := range []func(Tx){r.commit, r.rollback} {
		l := r.take("k")
		r.expire("k")
		tx := r.begin()
		r.fence(tx, l)
		q := request("k", lease.NewOwner())
		r.wantNotGranted(q)
		r.fence(tx, l)
		end(tx)
		r.wantRelease(r.takeSoon(q, l), false)
	}
}

// wantNotGranted asks for a key that a transaction of the test has locked. The store may refuse,
// fail, or wait until its context ends; it must not grant.
func (r *rig) wantNotGranted(q lease.AcquireRequest) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, min(2*time.Second, r.h.limit()/3))
	defer cancel()
	a, err := acquireOne(ctx, r.there(), q)
	if err == nil && a.Granted {
		r.Fatalf("acquire %q: granted with token %d while a transaction has the row", q.Key, a.Token)
	}
}

// takeSoon asks until the key is granted. It keeps to q's owner, because an earlier attempt of this
// owner may have outlived its context.
func (r *rig) takeSoon(q lease.AcquireRequest, old lease.Lease) lease.Lease {
	r.Helper()
	next := lease.Lease{Key: q.Key, Owner: q.Owner}
	r.eventually("the key to be granted after the transaction", func() bool {
		a, err := acquireOne(r.ctx, r.there(), q)
		next.Token = a.Token
		return err == nil && a.Granted
	})
	r.wantAbove(next, old)
	return next
}

// renewUnderFence is a watchdog that meets its own holder's transaction: the renewal must neither
// wait for it nor report the lease lost.
func renewUnderFence(r *rig) {
	r.fencer()
	l := r.take("k")
	tx := r.begin()
	r.fence(tx, l)
	start := time.Now()
	got, err := renewOne(r.ctx, r.here, l)
	if err != nil || got.Outcome == lease.Lost {
		r.Errorf("a renewal under the holder's own fence: %+v, %v", got, err)
	}
	if took := time.Since(start); took > prompt {
		r.Errorf("a renewal under the holder's own fence took %v", took)
	}
	r.fence(tx, l)
	r.commit(tx)
	r.wantHeld(l)
}

func fenceForeign(r *rig) {
	f := r.fencer()
	if r.h.Foreign == nil {
		r.Skip("Harness.Foreign is nil")
	}
	l := r.take("k")
	tx := r.h.Foreign(r.TB)
	r.Cleanup(func() { _ = tx.Rollback() })
	if err := f.Fence(r.ctx, tx, l); !errors.Is(err, lease.ErrForeignTx) {
		r.Errorf("fence in a transaction of another database: %v, want lease.ErrForeignTx", err)
	}
	r.wantHeld(l)
}
