package locktest

import (
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func (r *rig) intent(waiter lease.Owner, d time.Duration, keys ...string) {
	r.Helper()
	if err := r.sharer().Intend(r.ctx, waiter, keys, d); err != nil {
		r.Fatalf("intent: %v", err)
	}
}

func intentRefuses(r *rig) {
	r.sharer()
	l, waiter := r.group("k"), lease.NewOwner()
	refused := func(when string, want bool) {
		r.Helper()
		if r.letsIn("k") == want {
			r.Errorf("%s: refused is %t", when, !want)
		}
	}
	began := time.Now()
	r.intent(waiter, ttl, "k")
	refused("after an intent", true)
	r.wantRenew(l, lease.Extended)
	if age := r.ageUntilIn(waiter, "k") + time.Since(began); age < 4*time.Second {
		r.Errorf("an intent has let members in at an age of %v", age)
	}
	r.age(lease.IntentAdmits, "k")
	refused("after it has let members in for a while", true)
	r.age(lease.IntentRefuses-4*time.Second, "k") // or a busy machine comes too late
	refused("before it lets members in again", true)
	r.intent(waiter, 0, "k")
	refused("after it has ended", false)
}

// intentsCoincide has two intents begin so far apart that they would never let members in together
// if each counted from its own beginning.
func intentsCoincide(r *rig) {
	r.sharer()
	r.group("k")
	r.group("other")
	waiter := lease.NewOwner()
	r.intent(waiter, ttl, "k")
	time.Sleep(lease.IntentAdmits + lease.IntentAdmits/4)
	r.intent(waiter, ttl, "other")
	r.ageUntilIn(waiter, "k", "other")
}

// ageUntilIn ages intents, and repeats them, which keeps their age, until they let members of all
// keys in at once. It returns by how much. Steps are short, because time passes meanwhile; one that
// a busy machine has made too long may have passed over what the intents admit.
func (r *rig) ageUntilIn(waiter lease.Owner, keys ...string) (aged time.Duration) {
	r.Helper()
	const step = lease.IntentAdmits / 4
	limit, last := 16*time.Second, time.Now()
	for ; !r.letsIn(keys...); aged += step {
		if time.Since(last) > lease.IntentAdmits-2*step {
			limit = min(limit+lease.IntentRefuses+lease.IntentAdmits, time.Minute)
		}
		if aged >= limit {
			r.Fatalf("intents let no member of %q in, or not of all at once, within %v", keys, aged)
		}
		last = time.Now()
		r.age(step, keys...)
		r.intent(waiter, ttl, keys...)
	}
	return aged
}

// age makes the intents for keys older.
func (r *rig) age(by time.Duration, keys ...string) {
	r.Helper()
	for _, key := range keys {
		r.h.AgeIntents(r.TB, r.here, key, by)
	}
}

// letsIn reports whether one request makes new members of all keys' reader groups.
func (r *rig) letsIn(keys ...string) bool {
	r.Helper()
	var reqs []lease.AcquireRequest
	for _, key := range keys {
		reqs = append(reqs, request(key, lease.NewOwner()))
	}
	for _, a := range r.shareAll(reqs...) {
		if !a.Granted {
			return false
		}
	}
	return true
}
