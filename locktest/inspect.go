package locktest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var inspectProperties = []property{
	{"rows are listed page by page in the byte order of their keys", inspectPages},
	{"a prefix is bytes, not a pattern", inspectPrefix},
	{"only rows whose lease is alive are listed as held", inspectHeld},
	{"the parts of a filter narrow each other", inspectAll},
	{"a page of held keys is full though reader groups of the dead lie between them", inspectPastGroups},
	{"a listing without a limit ends at 1000 rows", inspectDefaultLimit},
	{"a row's age counts from the grant, not from a renewal", inspectAge},
}

// scattered are keys whose byte order is not the order of any collation.
var scattered = []string{
	"B", "a", "b", "A", "a/1", "a/2", "a/10", "a0", "a.", "Z", "z", "é", " ", "~",
	"\xff", "\xff\xff", "\xffa", "\x00", "\x01", "a\x00", "a\x00\xff", "a%", "a%b", "a_", "a_b", "aXb", `a\`, `a\b`,
}

func (r *rig) scatter() (sorted []string) {
	r.Helper()
	if _, refused := r.takeAll(scattered...); slices.Contains(refused, true) {
		r.Fatal("a free key was refused")
	}
	return slices.Sorted(slices.Values(scattered))
}

func inspectPages(r *rig) {
	want := r.scatter()
	for _, limit := range []int{1, 4, len(want), 500} {
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			page := r.list(lease.Filter{Keys: want, After: after, Limit: limit})
			got = append(got, keysOf(page)...)
			if len(page) > limit {
				r.Fatalf("%d rows on a page of %d", len(page), limit)
			}
			if len(page) < limit || len(got) > len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			r.Errorf("pages of %d list %q, want %q", limit, got, want)
		}
	}
	r.wantListed(lease.Filter{After: "a/", Prefix: "a/"}, "a/1", "a/10", "a/2")
	r.wantListed(lease.Filter{After: "a/1", Prefix: "a/", Limit: 1}, "a/10")
	r.wantListed(lease.Filter{After: "\xff\xff"})
}

func (r *rig) wantListed(f lease.Filter, want ...string) {
	r.Helper()
	if got := keysOf(r.list(f)); !slices.Equal(got, want) {
		r.Errorf("inspect %+v lists %q, want %q", f, got, want)
	}
}

func inspectPrefix(r *rig) {
	all := r.scatter()
	for _, prefix := range []string{
		"a", "A", "a%", "a_", "a/", "a/1", `a\`, "\xff", "\xff\xff", "a\x00", "\xc3", "é", " ", "%", "nothing",
	} {
		var want []string
		for _, key := range all {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		r.wantListed(lease.Filter{Prefix: prefix}, want...)
	}
}

func inspectHeld(r *rig) {
	held := r.take("held")
	expired := r.take("expired")
	r.expire("expired")
	released := r.take("released")
	r.wantRelease(released, false)
	rows := r.list(lease.Filter{Held: true, Prefix: "held"})
	r.wantListed(lease.Filter{Held: true, Keys: []string{"expired", "held", "released", "unknown"}}, "held")
	r.wantListed(lease.Filter{Keys: []string{"unknown", "released", "held", "expired"}}, "expired", "held", "released")
	if len(rows) != 1 || rows[0].Lease != held || !rows[0].Held || rows[0].Remaining <= 0 || rows[0].Remaining > ttl {
		r.Errorf("the held row is shown as %+v, want %+v", rows, held)
	}
	if row, _ := r.row("expired"); row.Token != expired.Token || row.Held || row.Remaining > 0 {
		r.Errorf("the expired row is shown as %+v", row)
	}
}

func inspectAll(r *rig) {
	for _, key := range []string{"p1", "p2", "p3", "p4", "q1", "q2"} {
		r.take(key)
	}
	r.expire("p3")
	f := lease.Filter{Keys: []string{"q1", "p4", "p3", "p2", "p1"}, Prefix: "p", After: "p1", Held: true}
	r.wantListed(f, "p2", "p4")
	f.Limit = 1
	r.wantListed(f, "p2")
	f.Prefix = "q"
	r.wantListed(f, "q1")
	f.Keys = []string{"p1"}
	r.wantListed(f)
}

// inspectPastGroups has more reader groups without a live member than held keys on each page.
func inspectPastGroups(r *rig) {
	r.sharer()
	for _, key := range []string{"a", "b", "c", "e", "f", "g", "i"} {
		l := r.group(key)
		r.h.ExpireMember(r.TB, r.here, key, l.Owner)
	}
	for _, key := range []string{"d", "h", "j"} {
		r.take(key)
	}
	r.group("k")
	f := lease.Filter{Held: true, Limit: 1}
	r.wantListed(f, "d")
	f.After = "d"
	r.wantListed(f, "h")
	f.Limit = 2
	r.wantListed(f, "h", "j")
	r.wantListed(lease.Filter{Held: true, Limit: 3}, "d", "h", "j")
	r.wantListed(lease.Filter{Held: true, Limit: 3, After: "d"}, "h", "j", "k")
	r.wantListed(lease.Filter{Held: true, Limit: 1, Keys: []string{"a", "b", "h"}}, "h")
	r.wantListed(lease.Filter{Held: true, Limit: 1, After: "k"})
}

func inspectDefaultLimit(r *rig) {
	const n = 1003
	if r.h.most(n) < n {
		r.Skip("Harness.Most: the store cannot hold so many keys")
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%04d", i)
	}
	r.takeAll(keys...)
	if n := len(r.list(lease.Filter{Prefix: "k"})); n != 1000 {
		r.Errorf("a filter without limit lists %d of %d rows, want 1000", n, len(keys))
	}
	if n := len(r.list(lease.Filter{Prefix: "k", Limit: 1002})); n != 1002 {
		r.Errorf("a limit of 1002 lists %d of %d rows", n, len(keys))
	}
}

func inspectAge(r *rig) {
	l := r.take("k")
	r.eventually("a lease of some age", func() bool {
		row, _ := r.row("k")
		return row.Age > 4*tolerance
	})
	r.wantRenew(l, lease.Extended)
	if row, _ := r.row("k"); row.Age < 3*tolerance {
		r.Errorf("after a renewal the lease is %v old", row.Age)
	}
	r.expire("k")
	start := time.Now()
	r.take("k")
	if row, _ := r.row("k"); row.Age < -tolerance || row.Age > time.Since(start)+tolerance {
		r.Errorf("a lease that was just granted is %v old", row.Age)
	}
}
