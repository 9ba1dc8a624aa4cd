package quorum_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/quorum"
)

// vague does what it is asked to raise, and says that it does not know. It counts what is released
// by owner, with whatever token.
type vague struct {
	*memstore.Store
	byOwner atomic.Int32
}

func (v *vague) Raise(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
	_, err := v.Store.Raise(ctx, reqs)
	return nil, fmt.Errorf("%w: %v", lease.ErrUnknown, err)
}

func (v *vague) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	for _, l := range leases {
		if l.Token == 0 {
			v.byOwner.Add(1)
		}
	}
	return v.Store.Release(ctx, leases)
}

// A member whose answer was lost has the lease all the same, and renewals count it. If another
// member fails, the lease stands on this one: a release of what it may have had in vain, sent at
// the grant and late on its way, would give the key to a second owner.
func TestNoMemberOfALeaseIsReleasedWhileItIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := &vague{Store: memstore.New()}
		ahead, third := memstore.New(), memstore.New()
		for _, s := range []*memstore.Store{ahead, third} { // they have granted a token before
			a, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: time.Nanosecond}})
			if err != nil || !a[0].Granted {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		time.Sleep(time.Second)
		q, err := quorum.New(ahead, behind, third)
		if err != nil {
			t.Fatal(err)
		}
		mine := lease.Lease{Key: "k", Owner: lease.NewOwner()}
		a, err := q.Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: mine.Owner, TTL: ttl}})
		if err != nil || !a[0].Granted {
			t.Fatalf("%+v, %v", a, err)
		}
		mine.Token = a[0].Token
		time.Sleep(ttl / 3)
		if n := behind.byOwner.Load(); n > 0 {
			t.Errorf("%d releases by owner while the lease is held", n)
		}
		if _, err := third.Release(t.Context(), []lease.Lease{mine}); err != nil { // it fails
			t.Fatal(err)
		}
		r, err := q.Renew(t.Context(), []lease.RenewRequest{{Lease: mine, TTL: ttl}})
		if err != nil || r[0].Outcome != lease.Extended {
			t.Errorf("two members of three have the lease: %+v, %v", r, err)
		}
		if _, err := q.Release(t.Context(), []lease.Lease{mine}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if behind.byOwner.Load() == 0 {
			t.Error("what the member may have had in vain is not released when the lease ends")
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}
