package locktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.Limiter.
var limitProperties = []property{
	{"a limit is made once, and keeps its number", limitMadeOnce},
	{"as many slots are granted as the limit says, and no more", limitIsKept},
	{"n slots are granted together or not at all", limitAllOrNone},
	{"a process with another limit is refused, and hears of both numbers", limitOther},
	{"a limit that was never made is refused", limitNeverMade},
	{"a larger limit is granted at once", limitGrows},
	{"a smaller limit takes no slot away, and none is granted until fewer are held", limitShrinks},
	{"a slot of a holder that has died is granted again, at any number", limitDied},
	{"a slot that is released and one that is held below it are counted right", limitCounts},
	{"a request for slots asked for again is the same lease, whatever the limit is then", limitAgain},
	{"slots of another name, a wrong number of them and a wrong limit are refused", limitMisused},
	{"no more slots are held than the limit says, however many ask while it changes", limitRace},
}

func (r *rig) limiter(s lease.Store) lease.Limiter { return able[lease.Limiter](r, s) }

// limit makes a limit that there is not yet.
func (r *rig) limit(slots int) lease.Limit {
	r.Helper()
	l := lease.Limit{Name: "limit", Slots: slots}
	if found, err := r.limiter(r.here).MakeLimit(r.ctx, l); err != nil || found != l {
		r.Fatalf("make %+v: %+v, %v", l, found, err)
	}
	return l
}

func (r *rig) resize(slots int) lease.Limit {
	r.Helper()
	l := lease.Limit{Name: "limit", Slots: slots}
	r.resizeBy(r.limiter(r.there()), l)
	return l
}

func (r *rig) resizeBy(by lease.Limiter, l lease.Limit) {
	r.Helper()
	if err := r.patient(func() error { return by.Resize(r.ctx, l) }); err != nil {
		r.Errorf("resize to %d: %v", l.Slots, err)
	}
}

// slots are requests for all slots of a limit.
func slots(l lease.Limit) []lease.AcquireRequest {
	keys := make([]string, l.Slots)
	for i := range keys {
		keys[i] = l.Slot(i)
	}
	return requests(keys...)
}

// within asks for n slots, and returns what was granted: n or none.
func (r *rig) within(l lease.Limit, n int) []lease.Lease {
	r.Helper()
	reqs := slots(l)
	answers, err := r.limiter(r.here).AcquireWithin(r.ctx, l, reqs, n)
	if err != nil {
		r.Fatalf("%d slots of %+v: %v", n, l, err)
	}
	got := grantedOf(reqs, answers)
	if len(answers) != len(reqs) || len(got) != 0 && len(got) != n {
		r.Fatalf("%d slots of %+v: %d of %d answers are grants", n, l, len(got), len(answers))
	}
	return got
}

func (r *rig) wantWithin(l lease.Limit, n int) []lease.Lease {
	r.Helper()
	got := r.within(l, n)
	if len(got) != n {
		r.Fatalf("%d slots of %+v: refused, though so many are free: %+v", n, l, r.list(lease.Filter{Held: true}))
	}
	return got
}

func (r *rig) wantNoneWithin(l lease.Limit, n int) {
	r.Helper()
	before := r.list(lease.Filter{Held: true})
	if got := r.within(l, n); len(got) > 0 {
		r.Fatalf("%d slots of %+v: granted, though %d are held: %+v", n, l, len(before), before)
	}
}

func limitMadeOnce(r *rig) {
	first := r.limit(3)
	found, err := r.limiter(r.there()).MakeLimit(r.ctx, lease.Limit{Name: first.Name, Slots: 5})
	if err != nil || found != first {
		r.Errorf("made with 3 and then with 5: %+v, %v", found, err)
	}
}

func limitIsKept(r *rig) {
	l := r.limit(3)
	var last []lease.Lease
	for range 3 {
		last = r.wantWithin(l, 1)
	}
	r.wantNoneWithin(l, 1)
	r.wantRelease(last[0], false)
	r.wantAbove(r.wantWithin(l, 1)[0], last[0])
	r.wantNoneWithin(l, 1)
}

func limitAllOrNone(r *rig) {
	l := r.limit(5)
	held := r.wantWithin(l, 3)
	r.wantNoneWithin(l, 3)
	if n := len(r.list(lease.Filter{Held: true})); n != 3 {
		r.Errorf("after 3 were granted and 3 refused, %d are held", n)
	}
	r.wantWithin(l, 2)
	for _, h := range held {
		r.wantRelease(h, false)
	}
	r.wantWithin(l, 3)
}

func limitOther(r *rig) {
	l := r.limit(3)
	r.wantOther(lease.Limit{Name: l.Name, Slots: 4}, 3)
	r.resize(2)
	r.wantOther(l, 2)
	r.wantWithin(lease.Limit{Name: l.Name, Slots: 2}, 2)
}

func (r *rig) wantOther(l lease.Limit, found int) {
	r.Helper()
	answers, err := r.limiter(r.here).AcquireWithin(r.ctx, l, slots(l), 1)
	var other *lease.LimitError
	if !errors.As(err, &other) || *other != (lease.LimitError{Name: l.Name, Slots: l.Slots, Found: found}) {
		r.Errorf("under a limit of %d with %d: %+v, %v", found, l.Slots, answers, err)
	}
	if held := r.list(lease.Filter{Held: true}); len(held) > 0 {
		r.Errorf("%+v was granted", held)
	}
}

func limitNeverMade(r *rig) {
	l := lease.Limit{Name: "limit", Slots: 3}
	r.limiter(r.here)
	r.wantOther(l, 0)
	if err := r.limiter(r.here).Resize(r.ctx, l); !errors.Is(err, lease.ErrLimit) {
		r.Errorf("resize: %v", err)
	}
}

func limitGrows(r *rig) {
	l := r.limit(1)
	r.wantWithin(l, 1)
	r.wantNoneWithin(l, 1)
	l = r.resize(3)
	r.wantWithin(l, 2)
	r.wantNoneWithin(l, 1)
}

func limitShrinks(r *rig) {
	held := r.wantWithin(r.limit(5), 5)
	l := r.resize(3)
	for _, i := range []int{0, 3, 1} { // slots above and below the new limit
		r.wantNoneWithin(l, 1)
		for _, h := range held {
			r.wantHeld(h)
		}
		r.wantRelease(held[i], false)
		held = slices.Delete(held, i, i+1)
	}
	r.wantWithin(l, 1)
	r.wantNoneWithin(l, 1)
}

func limitDied(r *rig) {
	r.wantWithin(r.limit(5), 5)
	l := r.resize(2)
	for i := range 5 {
		r.wantNoneWithin(l, 1)
		if i < 4 {
			r.expire(l.Slot(4 - i))
		}
		if i == 3 {
			break
		}
	}
	r.wantWithin(l, 1) // one is still held
	r.wantNoneWithin(l, 1)
}

// A held slot above the limit counts, and one just below it must not hide it.
func limitCounts(r *rig) {
	held := r.wantWithin(r.limit(5), 5)
	l := r.resize(3)
	byKey := make(map[string]lease.Lease)
	for _, h := range held {
		byKey[h.Key] = h
	}
	r.wantRelease(byKey[l.Slot(3)], false)
	r.wantRelease(byKey[l.Slot(0)], false)
	r.wantNoneWithin(l, 1) // 1, 2 and 4 are held
	r.wantRelease(byKey[l.Slot(2)], false)
	r.wantWithin(l, 1)
	r.wantNoneWithin(l, 1)
	r.wantRelease(byKey[l.Slot(4)], false)
	r.wantWithin(l, 1)
	r.wantNoneWithin(l, 1)
}

func limitAgain(r *rig) {
	l := r.limit(5)
	reqs := slots(l)
	var first []lease.Lease
	for _, in := range []int{5, 5, 2, 4} {
		if in != 5 {
			r.resize(in)
		}
		answers, err := r.limiter(r.here).AcquireWithin(r.ctx, l, reqs, 3)
		got := grantedOf(reqs, answers)
		if first == nil {
			first = got
		}
		if err != nil || len(got) != 3 || fmt.Sprint(got) != fmt.Sprint(first) {
			r.Fatalf("the same request, under a limit of %d, was answered %+v and then %+v, %v", in, first, got, err)
		}
	}
}

func limitMisused(r *rig) {
	l := r.limit(3)
	limits := r.limiter(r.here)
	for _, c := range []struct {
		l    lease.Limit
		reqs []lease.AcquireRequest
		n    int
	}{
		{l, slots(l), 0},
		{l, slots(l), 4},
		{l, requests("limit/000", "another/001"), 1},
		{l, requests("limit/000", "limit/1"), 1},
		{l, requests("limit/000", "limit/512"), 1},
		{l, requests("limit/000", "limit/000"), 1},
		{lease.Limit{Name: l.Name}, slots(l), 1},
		{lease.Limit{Name: l.Name, Slots: lease.MaxSlots + 1}, slots(l), 1},
		{lease.Limit{Slots: 3}, requests("/000"), 1},
	} {
		if answers, err := limits.AcquireWithin(r.ctx, c.l, c.reqs, c.n); err == nil {
			r.Errorf("%d slots of %+v was answered %+v", c.n, c.l, answers)
		}
	}
	for _, bad := range []int{0, -1, lease.MaxSlots + 1} {
		if err := limits.Resize(r.ctx, lease.Limit{Name: l.Name, Slots: bad}); err == nil {
			r.Errorf("resized to %d", bad)
		}
		if _, err := limits.MakeLimit(r.ctx, lease.Limit{Name: "bad", Slots: bad}); err == nil {
			r.Errorf("made with %d", bad)
		}
	}
	r.wantNoRows()
}

// limitRace has clerks take and give back slots while one of them changes the limit. A grant that
// began before a change may be answered after it, so that a clerk who has one slot too many by the
// new limit must not see the limit stay the same from before the request until after the answer.
func limitRace(r *rig) {
	const clerks = 8
	l := r.limit(4)
	var limit, changes, held, served atomic.Int64
	limit.Store(4)
	both := []lease.Limiter{r.limiter(r.here), r.limiter(r.there())}
	stores := []lease.Store{r.here, r.there()}
	together(clerks, func(clerk int) {
		rng := rand.New(rand.NewPCG(3, uint64(clerk)))
		for round := range r.h.scale(40) {
			if clerk == 0 && round%4 == 0 {
				r.change(both[1], l.Name, 2+rng.IntN(4), &limit, &changes)
				continue
			}
			before, now := changes.Load(), int(limit.Load())
			want := lease.Limit{Name: l.Name, Slots: now}
			reqs := slots(want)
			rng.Shuffle(len(reqs), func(i, j int) { reqs[i], reqs[j] = reqs[j], reqs[i] })
			n := 1 + rng.IntN(2)
			answers, err := both[clerk%2].AcquireWithin(r.ctx, want, reqs, n)
			got := grantedOf(reqs, answers)
			if err != nil || len(got) == 0 {
				continue
			}
			if h := held.Add(int64(n)); h > int64(now) && changes.Load() == before && before%2 == 0 {
				r.Errorf("%d slots are held under a limit of %d", h, now)
			}
			served.Add(1)
			time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
			held.Add(int64(-n)) // before the release, so that no other clerk counts it with its successor
			r.giveBack(stores[clerk%2], got)
		}
	})
	r.Logf("%d grants, %d changes", served.Load(), changes.Load()/2)
}

// change changes the limit. An odd number of changes says that one is under way.
func (r *rig) change(l lease.Limiter, name string, slots int, limit, changes *atomic.Int64) {
	changes.Add(1)
	r.resizeBy(l, lease.Limit{Name: name, Slots: slots})
	limit.Store(int64(slots))
	changes.Add(1)
}
