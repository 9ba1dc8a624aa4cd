package locktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// ttl is longer than any property runs. A property that needs the end of a lease uses Expire.
const ttl = 10 * time.Minute

// rig is what a property works with: two stores on the same rows, and calls that fail the test
// instead of returning an error. Calls of one item are in this file, those of several in batch.go.
type rig struct {
	testing.TB
	h   Harness
	ctx context.Context
	// here and there stand for two processes. The second is opened when it is first used.
	here  lease.Store
	there func() lease.Store
}

func newRig(tb testing.TB, h Harness) *rig {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), h.limit())
	tb.Cleanup(cancel)
	s := h.Open(tb)
	r := &rig{TB: tb, h: h, ctx: ctx, here: s, there: func() lease.Store { return s }}
	if h.Another != nil {
		r.there = sync.OnceValue(func() lease.Store { return h.Another(tb, s) })
	}
	return r
}

func (r *rig) expire(key string) {
	r.Helper()
	r.h.Expire(r.TB, r.here, key)
}

// try asks for key once.
func (r *rig) try(s lease.Store, key string, owner lease.Owner) lease.Acquired {
	r.Helper()
	a, err := acquireOne(r.ctx, s, request(key, owner))
	if err != nil {
		r.Fatalf("acquire %q: %v", key, err)
	}
	return a
}

// take gets a key that must be free, for a new owner.
func (r *rig) take(key string) lease.Lease {
	r.Helper()
	return r.takeAs(key, lease.NewOwner())
}

// takeAs gets a key that must be free.
func (r *rig) takeAs(key string, owner lease.Owner) lease.Lease {
	r.Helper()
	a := r.try(r.here, key, owner)
	if !a.Granted {
		r.Fatalf("acquire %q: refused, though it is free (holder %+v)", key, a.Holder)
	}
	if a.Token <= 0 {
		r.Fatalf("acquire %q: granted with token %d; tokens are above zero", key, a.Token)
	}
	return lease.Lease{Key: key, Owner: owner, Token: a.Token}
}

// takeAfter gets a key that must be free, with a token above old's.
func (r *rig) takeAfter(old lease.Lease) lease.Lease {
	r.Helper()
	next := r.take(old.Key)
	r.wantAbove(next, old)
	return next
}

func (r *rig) wantAbove(next, old lease.Lease) {
	r.Helper()
	if next.Token <= old.Token {
		r.Errorf("%q was granted with token %d after token %d", next.Key, next.Token, old.Token)
	}
}

// wantHeld checks that no other owner gets l's key, here or there, and that l can still be renewed.
func (r *rig) wantHeld(l lease.Lease) {
	r.Helper()
	for _, s := range []lease.Store{r.here, r.there()} {
		if a := r.try(s, l.Key, lease.NewOwner()); a.Granted {
			r.Fatalf("%q was granted again with token %d while it is held with token %d", l.Key, a.Token, l.Token)
		}
	}
	r.wantRenew(l, lease.Extended)
}

func (r *rig) wantRenew(l lease.Lease, want lease.RenewOutcome) {
	r.Helper()
	if got := r.renewAll(l)[0]; got != want {
		r.Errorf("renew %q with token %d: %v, want %v", l.Key, l.Token, got, want)
	}
}

func (r *rig) wantRelease(l lease.Lease, gone bool) {
	r.Helper()
	got, err := releaseOne(r.ctx, r.here, l)
	if err != nil {
		r.Fatalf("release %q with token %d: %v", l.Key, l.Token, err)
	}
	if got.Gone != gone {
		r.Errorf("release %q with token %d: gone %t, want %t", l.Key, l.Token, got.Gone, gone)
	}
}

// row returns key's record, if it has one.
func (r *rig) row(key string) (lease.Record, bool) {
	r.Helper()
	rows := r.list(lease.Filter{Keys: []string{key}})
	if len(rows) == 0 {
		return lease.Record{}, false
	}
	if len(rows) > 1 || rows[0].Key != key {
		r.Fatalf("inspect %q: %+v", key, rows)
	}
	return rows[0], true
}

func (r *rig) list(f lease.Filter) []lease.Record {
	r.Helper()
	rows, err := r.here.Inspect(r.ctx, f)
	if err != nil {
		r.Fatalf("inspect %+v: %v", f, err)
	}
	return rows
}

// eventually asks again until done is true, and fails the test if it is not in time.
func (r *rig) eventually(what string, done func() bool) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-r.ctx.Done():
			r.Fatalf("%s: not within %v", what, r.h.limit())
		case <-tick.C:
		}
	}
}
