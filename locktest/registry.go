package locktest

import (
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var interestProperties = []property{
	{"a process that waits is seen by others and not by itself", interestIsSeen},
	{"registrations are told apart by key", registrationsHaveKeys},
	{"a registration ends when it is removed, and no other does", registrationEnds},
	{"a registration ends by time, unless it is repeated", registrationLapses},
	{"to ask who waits changes nothing", askingIsFree},
	{"a release without waiters does not say that there are any", releaseKnowsNobody},
}

// waiter is a process that may wait for keys, on a store.
type waiter struct {
	*rig
	at      lease.Registry
	process lease.Owner
}

// waiters returns a process here and one there.
func (r *rig) waiters() (here, there waiter) {
	r.Helper()
	return r.waiterAt(r.here), r.waiterAt(r.there())
}

func (r *rig) waiterAt(s lease.Store) waiter {
	r.Helper()
	at := able[lease.Registry](r, s)
	return waiter{r, at, lease.NewOwner()}
}

func (w waiter) await(d time.Duration, keys ...string) {
	w.Helper()
	if err := w.at.Register(w.ctx, w.process, "", keys, d); err != nil {
		w.Fatalf("register %q: %v", keys, err)
	}
}

func (w waiter) desist(keys ...string) {
	w.Helper()
	if err := w.at.Unregister(w.ctx, w.process, keys); err != nil {
		w.Fatalf("unregister %q: %v", keys, err)
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

func registrationsHaveKeys(r *rig) {
	here, there := r.waiters()
	keys := []string{"b", "\x00\xff'\"{},\\", "a", "not", "b"}
	here.await(ttl, "b", "a", "\x00\xff'\"{},\\", "b")
	there.wantSees(keys, true, true, true, false, true)
}

func registrationEnds(r *rig) {
	here, there := r.waiters()
	here.await(ttl, "a", "b")
	there.await(ttl, "a", "b")
	here.desist("b", "never", "b")
	there.wantSees([]string{"a", "b"}, true, false)
	here.wantSees([]string{"a", "b"}, true, true)
}

// registrationLapses needs no sleep: when one registration has expired, the other would have too.
func registrationLapses(r *rig) {
	here, there := r.waiters()
	const short = 20 * time.Millisecond
	here.await(short, "again", "once")
	here.await(ttl, "again")
	r.eventually("the registration to lapse", func() bool { return !there.sees("once")[0] })
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
