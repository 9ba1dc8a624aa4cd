package locktest

import (
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

var interestProperties = []property{
	{"a process that waits is seen by others and not by itself", interestIsSeen},
	{"interest is told apart by key", interestHasKeys},
	{"interest ends when it is taken back, and nobody else's does", interestEnds},
	{"interest ends by time, unless it is repeated", interestLapses},
	{"to ask who waits changes nothing", askingIsFree},
	{"a release that nobody waits for does not say that somebody does", releaseKnowsNobody},
}

// waiter is a process that may wait for keys, on a store.
type waiter struct {
	*rig
	at      lease.Interest
	process lease.Owner
}

// waiters returns a process here and one there.
func (r *rig) waiters() (here, there waiter) {
	r.Helper()
	return r.waiterAt(r.here), r.waiterAt(r.there())
}

func (r *rig) waiterAt(s lease.Store) waiter {
	r.Helper()
	at, ok := seam.As[lease.Interest](s)
	if !ok {
		r.Skip("the store is not a lease.Interest")
	}
	return waiter{r, at, lease.NewOwner()}
}

func (w waiter) await(d time.Duration, keys ...string) {
	w.Helper()
	if err := w.at.Await(w.ctx, w.process, keys, d); err != nil {
		w.Fatalf("await %q: %v", keys, err)
	}
}

func (w waiter) desist(keys ...string) {
	w.Helper()
	if err := w.at.Desist(w.ctx, w.process, keys); err != nil {
		w.Fatalf("desist from %q: %v", keys, err)
	}
}

func (w waiter) sees(keys ...string) []bool {
	w.Helper()
	got, err := w.at.Awaited(w.ctx, w.process, keys)
	if err != nil || len(got) != len(keys) {
		w.Fatalf("awaited %q: %v, %v", keys, got, err)
	}
	return got
}

func (w waiter) wantSees(keys []string, want ...bool) {
	w.Helper()
	if got := w.sees(keys...); !slices.Equal(got, want) {
		w.Errorf("of %q others wait for %v, want %v", keys, got, want)
	}
}

func interestIsSeen(r *rig) {
	here, there := r.waiters()
	here.await(ttl, "k")
	there.wantSees([]string{"k"}, true)
	here.wantSees([]string{"k"}, false)
	there.await(ttl, "k")
	here.wantSees([]string{"k"}, true)
}

func interestHasKeys(r *rig) {
	here, there := r.waiters()
	keys := []string{"b", "\x00\xff'\"{},\\", "a", "not", "b"}
	here.await(ttl, "b", "a", "\x00\xff'\"{},\\", "b")
	there.wantSees(keys, true, true, true, false, true)
}

func interestEnds(r *rig) {
	here, there := r.waiters()
	here.await(ttl, "a", "b")
	there.await(ttl, "a", "b")
	here.desist("b", "never", "b")
	there.wantSees([]string{"a", "b"}, true, false)
	here.wantSees([]string{"a", "b"}, true, true)
}

// interestLapses needs no sleep: when one registration has expired, the other would have too.
func interestLapses(r *rig) {
	here, there := r.waiters()
	const short = 20 * time.Millisecond
	here.await(short, "again", "once")
	here.await(ttl, "again")
	r.eventually("interest to lapse", func() bool { return !there.sees("once")[0] })
	there.wantSees([]string{"again"}, true)
	here.await(ttl, "once")
	there.wantSees([]string{"once"}, true)
}

func askingIsFree(r *rig) {
	here, there := r.waiters()
	for range 2 {
		here.wantSees([]string{"k"}, false)
		there.wantSees([]string{"k"}, false)
	}
	if row, ok := r.row("k"); ok {
		r.Errorf("to ask who waits has made %+v", row)
	}
}

func releaseKnowsNobody(r *rig) {
	_, there := r.waiters()
	there.await(ttl, "other", "k")
	there.desist("k")
	got, err := releaseOne(r.ctx, r.here, r.take("k"))
	if err != nil || got.Awaited {
		r.Errorf("release: %+v, %v; nobody waits", got, err)
	}
}
