package locktest

import (
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

var raceProperties = []property{
	{"64 owners race for each of many new keys and one gets it", raceNew},
	{"64 owners race for one expired lease and one gets it", raceExpired},
	{"64 owners race for a released key and one gets it", raceReleased},
	{"racing retries of one owner get the same lease", raceRetries},
}

// raceFor lets n owners ask for every key at once and returns the one lease granted for each key.
func (r *rig) raceFor(n int, keys []string) map[string]lease.Lease {
	r.Helper()
	var mu sync.Mutex
	granted := make(map[string][]lease.Lease)
	both := []lease.Store{r.here, r.there()}
	together(n, func(i int) {
		s := both[i%2]
		for _, key := range keys {
			q := request(key, lease.NewOwner())
			a, err := acquireOne(r.ctx, s, q)
			if err != nil {
				r.Errorf("acquire %q, racing: %v", key, err)
			}
			if err == nil && a.Granted {
				mu.Lock()
				granted[key] = append(granted[key], lease.Lease{Key: key, Owner: q.Owner, Token: a.Token})
				mu.Unlock()
			}
		}
	})
	winners := make(map[string]lease.Lease)
	for _, key := range keys {
		if len(granted[key]) != 1 {
			r.Fatalf("%d owners raced for %q and %d were granted it: %+v", n, key, len(granted[key]), granted[key])
		}
		winners[key] = granted[key][0]
		r.wantRenew(winners[key], lease.Extended)
	}
	return winners
}

func raceNew(r *rig) {
	keys := make([]string, r.h.most(r.h.scale(40)))
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	first := r.raceFor(r.h.scale(64), keys)
	for _, key := range keys {
		r.wantRelease(first[key], false)
	}
	for key, second := range r.raceFor(r.h.scale(64), keys) {
		r.wantAbove(second, first[key])
	}
}

func raceExpired(r *rig) {
	last := r.take("k")
	for range r.h.scale(16) {
		r.expire("k")
		next := r.raceFor(r.h.scale(64), []string{"k"})["k"]
		r.wantAbove(next, last)
		r.wantRenew(last, lease.Lost)
		last = next
	}
}

func raceReleased(r *rig) {
	last := r.take("k")
	for range r.h.scale(16) {
		r.wantRelease(last, false)
		next := r.raceFor(r.h.scale(64), []string{"k"})["k"]
		r.wantAbove(next, last)
		last = next
	}
}

// raceRetries is a statement that a driver or a proxy sent twice.
func raceRetries(r *rig) {
	for round := range r.h.scale(16) {
		key, owner := fmt.Sprint("k", round%4), lease.NewOwner()
		answers := make([]lease.Acquired, 16)
		together(len(answers), func(i int) {
			var err error
			if answers[i], err = acquireOne(r.ctx, r.here, request(key, owner)); err != nil {
				r.Errorf("acquire %q, sent several times: %v", key, err)
			}
		})
		// The next repetition finds what any of them was granted.
		last, err := acquireOne(r.ctx, r.here, request(key, owner))
		if err != nil || !last.Granted {
			r.Fatalf("one owner asked several times at once, then once more and got %+v, %v", last, err)
		}
		for _, a := range answers {
			unsure := a.Locked || a.Unknown // it met a copy of itself and says so
			if !a.Granted && !unsure || a.Granted && a.Token != last.Token {
				r.Fatalf("one owner asked several times at once and got %+v, and then %+v", a, last)
			}
		}
		l := lease.Lease{Key: key, Owner: owner, Token: last.Token}
		r.wantHeld(l)
		r.expire(key)
	}
}
