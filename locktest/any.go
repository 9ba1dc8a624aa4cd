package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.AnyAcquirer.
var anyProperties = []property{
	{"any of keys that are absent, free and expired is granted", anyGranted},
	{"any grants exactly as many as were asked for, or none", anyExactly},
	{"any takes the first that are free, in the order of the requests", anyInOrder},
	{"any passes over keys that are held, and over nothing else", anyPassesOver},
	{"a loser of any leaves owners, tokens and expiries as they are, and makes no row", anyUntouched},
	{"a loser of any hears of every holder", anyHolders},
	{"any asked for again is the same lease, not extended, and no other", anyAgain},
	{"what is left of an earlier any is unknown and not made up for", anyLeft},
	{"a key whose tokens are exhausted is passed over, and says so", anyExhausted},
	{"a key that comes twice among any, or a wrong number, is refused", anyMisused},
	{"any of 500 keys is granted", anyMany},
	{"no key has two owners however many ask for any", anyRace},
}

// canAny reports whether the store can do it, with the database under it.
func canAny(s lease.Store) bool {
	a, ok := adapter.As[lease.AnyAcquirer](s)
	if !ok {
		return false
	}
	probe := request("any", lease.NewOwner())
	answers, err := a.AcquireAny(context.Background(), []lease.AcquireRequest{probe}, 1)
	if err == nil && answers[0].Granted {
		l := lease.Lease{Key: probe.Key, Owner: probe.Owner, Token: answers[0].Token}
		_, err = releaseOne(context.Background(), s, l)
	}
	return !errors.Is(err, lease.ErrUnsupported)
}

const noAny = "the store does not acquire any of several keys"

func (r *rig) anyAcquirer(s lease.Store) lease.AnyAcquirer { return able[lease.AnyAcquirer](r, s) }

// some asks for n of the keys, and returns the leases that were granted: n or none.
func (r *rig) some(reqs []lease.AcquireRequest, n int) (leases []lease.Lease, answers []lease.Acquired) {
	r.Helper()
	answers, err := r.anyAcquirer(r.here).AcquireAny(r.ctx, reqs, n)
	if err != nil {
		r.Fatalf("acquire any: %v", err)
	}
	leases = grantedOf(reqs, answers)
	if len(answers) != len(reqs) || len(leases) != 0 && len(leases) != n {
		r.Fatalf("acquire any %d: %d of %d answers are grants", n, len(leases), len(answers))
	}
	return leases, answers
}

func grantedOf(reqs []lease.AcquireRequest, answers []lease.Acquired) (leases []lease.Lease) {
	for i, a := range answers {
		if a.Granted && i < len(reqs) {
			leases = append(leases, lease.Lease{Key: reqs[i].Key, Owner: reqs[i].Owner, Token: a.Token})
		}
	}
	return leases
}

// takeAny locks n of keys of which as many are free.
func (r *rig) takeAny(n int, keys ...string) []lease.Lease {
	r.Helper()
	leases, answers := r.some(requests(keys...), n)
	if len(leases) != n {
		r.Fatalf("acquire any %d of %q: refused, though they are free: %+v", n, keys, answers)
	}
	for _, l := range leases {
		r.wantHeld(l)
	}
	return leases
}

// wantNotAny asks for n of keys of which fewer are free, and returns the answers.
func (r *rig) wantNotAny(n int, keys ...string) []lease.Acquired {
	r.Helper()
	leases, answers := r.some(requests(keys...), n)
	if len(leases) != 0 {
		r.Fatalf("acquire any %d of %q: granted %+v, though fewer are free", n, keys, leases)
	}
	return answers
}

func anyGranted(r *rig) {
	free, expired := r.take("free"), r.take("expired")
	r.wantRelease(free, false)
	r.expire("expired")
	r.wantAbove(r.takeAny(1, "free")[0], free)
	r.wantAbove(r.takeAny(1, "free", "expired")[0], expired)
	if l := r.takeAny(1, "free", "expired", "absent")[0]; l.Key != "absent" || l.Token <= 0 {
		r.Errorf("granted %+v, want the key without a row", l)
	}
	r.wantRenew(expired, lease.Lost)
}

func anyExactly(r *rig) {
	r.take("c")
	for n := 1; n <= 3; n++ {
		leases := r.takeAny(n, "b", "c", "a", "d")
		held := 0
		for _, row := range r.list(lease.Filter{Held: true}) {
			if row.Key != "c" {
				held++
			}
		}
		if held != n {
			r.Errorf("any %d of four: %d are held", n, held)
		}
		for _, l := range leases {
			r.wantRelease(l, false)
		}
	}
	before := r.list(lease.Filter{})
	r.wantNotAny(4, "b", "c", "a", "d")
	r.wantRowsAsBefore(before)
}

func anyInOrder(r *rig) {
	for _, key := range scattered {
		r.wantRelease(r.take(key), false)
	}
	for _, key := range scattered {
		if l := r.takeAny(1, scattered...)[0]; l.Key != key {
			r.Errorf("granted %q, want the first that is free: %q", l.Key, key)
		}
	}
}

func anyPassesOver(r *rig) {
	keys := []string{"a", "b", "c", "d", "e"}
	var last lease.Lease
	for i := range keys {
		last = r.takeAny(1, keys...)[0]
		if got := len(r.list(lease.Filter{Held: true})); got != i+1 {
			r.Fatalf("after %d grants %d keys are held", i+1, got)
		}
	}
	r.wantNotAny(1, keys...)
	r.wantRelease(last, false)
	r.wantAbove(r.takeAny(1, keys...)[0], last)
}

// wantRowsAsBefore wants that nothing was granted, renewed, released or made since.
func (r *rig) wantRowsAsBefore(before []lease.Record) {
	r.Helper()
	after := r.list(lease.Filter{})
	if len(before) != len(after) {
		r.Fatalf("the rows were %+v and are %+v", before, after)
	}
	for i := range after {
		b, a := before[i], after[i]
		if a.Lease != b.Lease || a.Held != b.Held || a.Note != b.Note || a.Remaining > b.Remaining ||
			a.Age < b.Age {
			r.Errorf("the row was %+v and is %+v", b, a)
		}
	}
}

func anyUntouched(r *rig) {
	r.take("held")
	r.take("also held")
	r.wantRelease(r.take("free"), false)
	before := r.list(lease.Filter{})
	for range 3 {
		r.wantNotAny(1, "held", "also held")
		r.wantNotAny(2, "held", "free", "also held")
		r.wantNotAny(3, "held", "free", "also held", "absent")
	}
	r.wantRowsAsBefore(before)
}

func anyHolders(r *rig) {
	long := longestNote()[len("ö"):]
	keys := []string{"d", "a", "b", "c"}
	for _, key := range keys {
		q := request(key, lease.NewOwner())
		q.Note = long + key
		if a := r.acquireAll([]lease.AcquireRequest{q})[0]; !a.Granted {
			r.Fatalf("%q: refused", key)
		}
	}
	for i, a := range r.wantNotAny(1, keys...) {
		h := a.Holder
		if a.Possible || h.Note != long+keys[i] || h.Remaining <= ttl/2 || h.Remaining > ttl {
			r.Errorf("for %q the answer is %+v", keys[i], a)
		}
	}
}

func anyAgain(r *rig) {
	reqs := requests("c", "a", "b")
	first, _ := r.some(reqs, 1)
	before := r.list(lease.Filter{})
	for range 2 {
		again, _ := r.some(reqs, 1)
		if len(first) != 1 || len(again) != 1 || again[0] != first[0] {
			r.Fatalf("the same request was answered %+v and then %+v", first, again)
		}
	}
	// To confirm a repeat the store may write, which extends the lease by the clock's resolution.
	for i, row := range r.list(lease.Filter{}) {
		if row.Lease != before[i].Lease || row.Remaining > before[i].Remaining+tolerance {
			r.Errorf("the row was %+v, and after the same request is %+v", before[i], row)
		}
	}
}

func anyLeft(r *rig) {
	reqs := requests("a", "b", "c")
	first, _ := r.some(reqs, 2)
	r.wantRelease(first[0], false)
	answers, err := r.anyAcquirer(r.here).AcquireAny(r.ctx, reqs, 2)
	if !errors.Is(err, lease.ErrUnknown) {
		r.Errorf("one of two is left, and the answer is %+v, %v; want lease.ErrUnknown", answers, err)
	}
	if held := r.list(lease.Filter{Held: true}); len(held) != 1 {
		r.Errorf("afterwards %+v are held, want the one that was left", held)
	}
}

func anyExhausted(r *rig) {
	if r.h.SetToken == nil {
		r.Skip("Harness.SetToken is nil")
	}
	r.wantRelease(r.take("b"), false)
	r.h.SetToken(r.TB, r.here, "b", lease.MaxToken-1)
	r.take("c")
	r.wantRelease(r.takeAny(1, "b", "a", "c")[0], false)
	if answers := r.wantNotAny(1, "b", "c"); !errors.Is(answers[0].Err, lease.ErrTokenExhausted) ||
		answers[1].Err != nil {
		r.Errorf("answered %+v; want lease.ErrTokenExhausted for the first", answers)
	}
}

func anyMisused(r *rig) {
	a := r.anyAcquirer(r.here)
	for _, c := range []struct {
		reqs []lease.AcquireRequest
		n    int
	}{
		{requests("a", "b", "a"), 1},
		{requests("a", "b"), 0},
		{requests("a", "b"), -1},
		{requests("a", "b"), 3},
		{nil, 1},
		{append(requests("a"), request("b", lease.Owner{})), 1},
		{append(requests("a"), request("", lease.NewOwner())), 1},
	} {
		if answers, err := a.AcquireAny(r.ctx, c.reqs, c.n); err == nil {
			r.Errorf("any %d of %+v was answered %+v", c.n, c.reqs, answers)
		}
	}
	r.wantNoRows()
}

func anyMany(r *rig) {
	keys := make([]string, r.h.most(500))
	for i := range keys {
		keys[i] = string(rune('a'+i%26)) + string(rune('0'+i/26))
	}
	r.take(keys[0])
	if l := r.takeAny(1, keys...)[0]; l.Key != keys[1] {
		r.Errorf("granted %q, want %q", l.Key, keys[1])
	}
	if n := len(keys) - 2; n > 0 {
		r.takeAny(n, keys...)
	}
	r.wantNotAny(1, keys...)
}

// anyRace is 16 clerks who each want one or two of four counters. A counter that two clerks have at
// once loses a count.
func anyRace(r *rig) {
	const counters, clerks = 4, 16
	var busy, counts [counters]atomic.Int64
	var served atomic.Int64
	r.anyAcquirer(r.here)
	both := []lease.Store{r.here, r.there()}
	together(clerks, func(clerk int) {
		rng := rand.New(rand.NewPCG(2, uint64(clerk)))
		for range r.h.scale(24) {
			leases := r.untilAny(both[clerk%2], rng.Perm(counters), 1+rng.IntN(2))
			for _, l := range leases {
				i := l.Key[len(l.Key)-1] - '0'
				if busy[i].Add(1) != 1 {
					r.Errorf("%q has two owners", l.Key)
				}
				counts[i].Add(1)
				served.Add(1)
			}
			time.Sleep(time.Microsecond)
			for _, l := range leases {
				busy[l.Key[len(l.Key)-1]-'0'].Add(-1)
			}
			r.giveBack(both[clerk%2], leases)
		}
	})
	r.Logf("%d grants", served.Load())
}

// untilAny asks until n of the counters are granted. It fails the test, and returns nil, when that
// does not come.
func (r *rig) untilAny(s lease.Store, order []int, n int) []lease.Lease {
	keys := make([]string, len(order))
	for i, counter := range order {
		keys[i] = fmt.Sprint("counter", counter)
	}
	some, _ := adapter.As[lease.AnyAcquirer](s)
	for r.ctx.Err() == nil && !r.Failed() {
		reqs := requests(keys...)
		answers, err := some.AcquireAny(r.ctx, reqs, n)
		leases := grantedOf(reqs, answers)
		switch {
		case err != nil && !passes(err):
			r.Errorf("acquire any of %q, racing: %v", keys, err)
			return nil
		case len(leases) != 0 && len(leases) != n:
			r.Errorf("acquire any %d of %q granted %+v", n, keys, leases)
			return nil
		case len(leases) == n:
			return leases
		}
		time.Sleep(rand.N(time.Millisecond))
	}
	if !r.Failed() {
		r.Errorf("%q were not granted within %v", keys, r.h.limit())
	}
	return nil
}

func (r *rig) giveBack(s lease.Store, leases []lease.Lease) {
	released, err := s.Release(r.ctx, leases)
	if err != nil {
		r.Errorf("release: %v", err)
	}
	for i, a := range released {
		if a.Gone || a.Err != nil {
			r.Errorf("release of %q: %+v", leases[i].Key, a)
		}
	}
}
