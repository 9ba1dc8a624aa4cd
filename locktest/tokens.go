package locktest

import (
	"errors"

	"github.com/rowlockdb/rowlock/lease"
)

var tokenProperties = []property{
	{"tokens grow across release, expiry, takeover, sweeping and re-creation", tokensGrow},
	{"a floor that keys share is never lowered", tokensOfNeighbours},
	{"a key whose tokens have run out is refused", tokensRunOut},
}

func tokensGrow(r *rig) {
	last := r.take("k")
	for range 4 {
		r.wantRelease(last, false)
		last = r.takeAfter(last)
		r.expire("k")
		last = r.takeAfter(last)
		if r.canSweep() {
			r.wantRelease(last, false)
			r.sweepAll()
			last = r.takeAfter(last)
			r.expire("k")
			r.sweepAll()
			last = r.takeAfter(last)
		}
	}
}

// tokensOfNeighbours sweeps keys that may share a floor in the order that would lower it again: the
// largest token first.
func tokensOfNeighbours(r *rig) {
	r.sweeper()
	keys := sameBucket(3)
	var last []lease.Lease
	for i, key := range keys {
		l := r.take(key)
		for range 3 * (len(keys) - i) {
			r.wantRelease(l, false)
			l = r.takeAfter(l)
		}
		last = append(last, l)
	}
	for i := range keys {
		r.wantRelease(last[i], false)
		r.sweepAll()
	}
	for _, l := range last {
		r.takeAfter(l)
	}
}

// sameBucket returns n keys that count from one floor.
func sameBucket(n int) []string {
	var keys []string
	for c := 0; len(keys) < n; c++ {
		key := "neighbour" + string(rune('a'+c))
		if lease.Bucket(key) == lease.Bucket("neighboura") {
			keys = append(keys, key)
		}
	}
	return keys
}

func tokensRunOut(r *rig) {
	if r.h.SetToken == nil {
		r.Skip("Harness.SetToken is nil")
	}
	first := r.take("k")
	r.wantRelease(first, false)
	r.h.SetToken(r.TB, r.here, "k", lease.MaxToken-2)
	last := r.take("k")
	if last.Token != lease.MaxToken-1 {
		r.Errorf("the token after MaxToken-2 is %d, want MaxToken-1 (%d)", last.Token, lease.MaxToken-1)
	}
	r.wantHeld(last)
	r.wantRelease(last, false)
	for range 2 {
		r.wantExhausted("k")
	}
	r.wantHeld(r.take("other"))
}

func (r *rig) wantExhausted(key string) {
	r.Helper()
	a, err := acquireOne(r.ctx, r.here, request(key, lease.NewOwner()))
	if err == nil && a.Granted {
		r.Fatalf("acquire %q: granted with token %d, beyond the last", key, a.Token)
	}
	if !errors.Is(err, lease.ErrTokenExhausted) {
		r.Errorf("acquire %q: error %v, want lease.ErrTokenExhausted", key, err)
	}
	if row, _ := r.row(key); row.Held {
		r.Errorf("a refused key is held: %+v", row)
	}
}
