package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.ForceReleaser.
var forceProperties = []property{
	{"a forced release frees the key, and raises its token", forceFrees},
	{"the holder from whom a key was taken is refused", forceDeposes},
	{"an expired lease is taken too, and its fence is refused", forceExpired},
	{"every member of a shared key loses it", forceMembers},
	{"a forced release waits for the holder's fence", forceWaits},
	{"a repeated forced release answers as the first", forceAgain},
	{"a forced release that names another token changes nothing", forceOther},
	{"a free key is not taken, and leaves no record", forceFree},
	{"of forced releases of one lease at once, one succeeds", forceOnce},
	{"each forced release has its record", forceRecords},
	{"of a key, the latest forced release is listed first", forceOrder},
	{"pages of records leave none out, and repeat none", forcePages},
	{"a forced release without operator, reason or ID is refused", forceRefused},
}

func (r *rig) forcer() lease.ForceReleaser { return able[lease.ForceReleaser](r, r.here) }

func forceRequest(key string) lease.ForceRequest {
	return lease.ForceRequest{Key: key, By: "ops/1/locktest", Reason: "as a test", ID: lease.NewOwner()}
}

// takeAway takes l from its holder.
func (r *rig) takeAway(l lease.Lease) lease.Forced {
	r.Helper()
	f, err := r.forcer().ForceRelease(r.ctx, forceRequest(l.Key))
	if err != nil {
		r.Fatalf("force release of %q: %v", l.Key, err)
	}
	if f.Lease.Token != l.Token || f.Raised <= l.Token {
		r.Errorf("force release of %+v: %+v", l, f)
	}
	return f
}

// wantNotForced checks that q is refused and changes nothing.
func (r *rig) wantNotForced(q lease.ForceRequest, want error) {
	r.Helper()
	before, _ := r.row(q.Key)
	if f, err := r.forcer().ForceRelease(r.ctx, q); !errors.Is(err, want) {
		r.Errorf("force release %+v: %+v, %v, want %v", q, f, err, want)
	}
	if after, _ := r.row(q.Key); after.Lease != before.Lease || after.Held != before.Held {
		r.Errorf("a refused forced release made of %+v this: %+v", before, after)
	}
	if n := len(r.records(lease.ForcedFilter{Key: q.Key})); q.Key != "" && n != 0 {
		r.Errorf("a refused forced release left %d records", n)
	}
}

func (r *rig) records(f lease.ForcedFilter) []lease.Forced {
	r.Helper()
	all, err := r.forcer().ForceReleases(r.ctx, f)
	if err != nil {
		r.Fatalf("list forced releases: %v", err)
	}
	return all
}

func forceFrees(r *rig) {
	l := r.take("k")
	other := r.take("other")
	f := r.takeAway(l)
	if row, _ := r.row("k"); row.Held || !row.Owner.IsZero() || row.Token != f.Raised {
		r.Errorf("after a forced release the row is %+v, want it free with token %d", row, f.Raised)
	}
	if next := r.takeAfter(l); next.Token <= f.Raised {
		r.Errorf("the next grant has token %d, want one above %d", next.Token, f.Raised)
	}
	r.wantHeld(other)
}

func forceDeposes(r *rig) {
	l := r.take("k")
	r.takeAway(l)
	r.wantRenew(l, lease.Lost)
	r.wantRelease(l, true)
	if r.h.Begin != nil {
		r.wantFenced(l)
	}
	next := r.takeAfter(l)
	r.wantRenew(l, lease.Lost)
	r.wantRelease(l, true)
	r.wantHeld(next)
}

func forceExpired(r *rig) {
	l := r.take("k")
	r.expire("k")
	r.takeAway(l)
	if r.h.Begin != nil {
		r.wantFenced(l)
	}
	r.takeAfter(l)
}

func forceMembers(r *rig) {
	r.forcer()
	r.sharer()
	first := r.group("k")
	second := r.share("k")
	if f := r.takeAway(first); f.Lease.Owner != lease.ReaderGroup(first.Token) {
		r.Errorf("the record of a shared key names %+v", f.Lease)
	}
	for _, l := range []lease.Lease{first, second} {
		r.wantRenew(l, lease.Lost)
		r.wantRelease(l, true)
		if r.h.Begin != nil {
			r.wantFenced(l)
		}
	}
	next := r.takeAfter(first)
	r.wantRenew(second, lease.Lost)
	r.wantHeld(next)
}

// forceWaits ends the wait by its context: a store that did not wait would take the key meanwhile.
func forceWaits(r *rig) {
	r.forcer()
	r.fencer()
	l := r.take("k")
	tx := r.begin()
	r.fence(tx, l)
	ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
	defer cancel()
	if f, err := r.forcer().ForceRelease(ctx, forceRequest("k")); err == nil {
		r.Errorf("a key was taken while its holder's fence was open: %+v", f)
	}
	r.commit(tx)
	r.eventually("a forced release after the fence", func() bool {
		f, err := r.forcer().ForceRelease(r.ctx, forceRequest("k"))
		gone := errors.Is(err, lease.ErrNotHeld) // by the one that was cut off, which ran on
		return err == nil && f.Lease.Token == l.Token || gone
	})
	r.wantRenew(l, lease.Lost)
}

func forceAgain(r *rig) {
	l := r.take("k")
	q := forceRequest("k")
	var first lease.Forced
	for i := range 3 {
		f, err := r.forcer().ForceRelease(r.ctx, q)
		if err != nil {
			r.Fatalf("force release, time %d: %v", i, err)
		}
		if i == 0 {
			first = f
			l = r.takeAfter(l)
		}
		if f != first {
			r.Errorf("force release, time %d: %+v, want %+v", i, f, first)
		}
		r.wantHeld(l)
	}
	if n := len(r.records(lease.ForcedFilter{Key: "k"})); n != 1 {
		r.Errorf("%d records of one forced release", n)
	}
}

func forceOther(r *rig) {
	l := r.take("k")
	q := forceRequest("k")
	q.Token = l.Token + 1
	r.wantNotForced(q, lease.ErrNotHeld)
	r.wantHeld(l)
	q = forceRequest("k")
	q.Token = l.Token
	if _, err := r.forcer().ForceRelease(r.ctx, q); err != nil {
		r.Errorf("force release of the token that holds: %v", err)
	}
	r.takeAfter(l)
}

func forceFree(r *rig) {
	r.wantNotForced(forceRequest("never"), lease.ErrNotHeld)
	l := r.take("k")
	r.wantRelease(l, false)
	r.wantNotForced(forceRequest("k"), lease.ErrNotHeld)
	if next := r.takeAfter(l); next.Token != l.Token+1 {
		r.Errorf("a refused forced release moved the token from %d to %d", l.Token, next.Token)
	}
}

func forceOnce(r *rig) {
	here := r.forcer()
	there, ok := adapter.As[lease.ForceReleaser](r.there())
	if !ok {
		there = here
	}
	l := r.take("k")
	var took atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s := []lease.ForceReleaser{here, there}[i%2]
			for {
				_, err := s.ForceRelease(r.ctx, forceRequest("k"))
				if err == nil {
					took.Add(1)
				} else if errors.Is(err, lease.ErrBusy) && r.ctx.Err() == nil {
					continue
				} else if !errors.Is(err, lease.ErrNotHeld) {
					r.Errorf("force release: %v", err)
				}
				return
			}
		})
	}
	all.Wait()
	if n, records := took.Load(), len(r.records(lease.ForcedFilter{Key: "k"})); n != 1 || records != 1 {
		r.Errorf("%d forced releases of one lease succeeded, with %d records", n, records)
	}
	if row, _ := r.row("k"); row.Token != l.Token+1 {
		r.Errorf("one forced release moved the token from %d to %d", l.Token, row.Token)
	}
}

func forceRecords(r *rig) {
	var want []lease.Forced
	for _, key := range []string{"a/1", "b/\xff\x00", "a/2", "a/1"} {
		q := request(key, lease.NewOwner())
		q.Note = "web-1\tnightly import"
		a, err := acquireOne(r.ctx, r.here, q)
		if err != nil || !a.Granted {
			r.Fatalf("acquire %q: %+v, %v", key, a, err)
		}
		f := r.takeAway(lease.Lease{Key: key, Owner: q.Owner, Token: a.Token})
		if f.Note != q.Note || f.Lease.Owner != q.Owner || f.By != "ops/1/locktest" || f.Reason != "as a test" {
			r.Errorf("the record of %q is %+v", key, f)
		}
		want = append([]lease.Forced{f}, want...)
		r.pass2ms()
	}
	for _, c := range []struct {
		filter lease.ForcedFilter
		want   []int
	}{
		{lease.ForcedFilter{}, []int{0, 1, 2, 3}},
		{lease.ForcedFilter{Prefix: "a/"}, []int{0, 1, 3}},
		{lease.ForcedFilter{Key: "a/1"}, []int{0, 3}},
		{lease.ForcedFilter{Key: "b/\xff\x00"}, []int{2}},
		{lease.ForcedFilter{Limit: 2}, []int{0, 1}},
		{lease.ForcedFilter{Before: want[1].At}, []int{2, 3}},
		{lease.ForcedFilter{Key: "none"}, nil},
	} {
		got := r.records(c.filter)
		same := len(got) == len(c.want)
		for i := 0; same && i < len(got); i++ {
			same = got[i] == want[c.want[i]]
		}
		if !same {
			r.Errorf("records of %+v: %+v, want %v of %+v", c.filter, got, c.want, want)
		}
	}
}

// Nothing passes between the releases: a store whose clock counts milliseconds has several in one.
func forceOrder(r *rig) {
	var want []lease.Token
	for range 8 {
		want = append(want, r.takeAway(r.take("k")).Raised)
	}
	slices.Reverse(want)
	var got []lease.Token
	for _, f := range r.records(lease.ForcedFilter{Key: "k"}) {
		got = append(got, f.Raised)
	}
	if !slices.Equal(got, want) {
		r.Errorf("the records raised the token to %d, want the latest first: %d", got, want)
	}
}

// As forceOrder, across pages that end between records of one time.
func forcePages(r *rig) {
	for range 8 {
		r.takeAway(r.take("k"))
	}
	for name, f := range map[string]lease.ForcedFilter{
		"key": {Key: "k", Limit: 3}, "prefix": {Prefix: "k", Limit: 3},
	} {
		all := r.records(lease.ForcedFilter{Key: f.Key, Prefix: f.Prefix})
		var got []lease.Forced
		for page := r.records(f); len(page) > 0 && len(got) < 20; page = r.records(f) {
			got = append(got, page...)
			f.Last = page[len(page)-1]
		}
		if !slices.Equal(got, all) {
			r.Errorf("by %s: the pages list %+v, want %+v", name, got, all)
		}
	}
}

// pass2ms lets the store's clock move on, whatever its resolution.
func (r *rig) pass2ms() { time.Sleep(2 * time.Millisecond) }

func forceRefused(r *rig) {
	r.take("k")
	for _, spoil := range []func(q *lease.ForceRequest){
		func(q *lease.ForceRequest) { q.By = "" },
		func(q *lease.ForceRequest) { q.Reason = " " },
		func(q *lease.ForceRequest) { q.Reason = "\xff" },
		func(q *lease.ForceRequest) { q.ID = lease.Owner{} },
		func(q *lease.ForceRequest) { q.Token = -1 },
	} {
		q := forceRequest("k")
		spoil(&q)
		r.wantNotForced(q, lease.ErrConfig)
	}
	r.wantNotForced(forceRequest(""), lease.ErrInvalidKey)
}
