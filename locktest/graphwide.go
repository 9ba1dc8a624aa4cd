package locktest

import "github.com/rowlockdb/rowlock/lease"

// Of several chains.
var graphWideProperties = []property{
	{"edges are followed from chain to chain, through every key that is waited for", edgesFollowed},
	{"a cycle is read once, wherever the reading begins", edgesOfCycle},
	{"no more edges are read than asked for", edgesLimited},
	{"chains hold and wait for keys of any bytes", edgesOfAnyKey},
	{"300 chains are recorded, read and erased in one call each", edgesOfMany},
}

func edgesFollowed(r *rig) {
	here, there := r.graph()
	a, b, c, d := r.take("a"), r.take("b"), r.take("c"), r.take("d")
	last := chain(holding(a))
	left, right := chain(holding(b, d), "a", "free"), chain(holding(c))
	first := chain(nil, "b", "c", "d")
	aside := chain(nil, "c")
	here.record(ttl, last, first)
	there.record(ttl, left, right, aside)
	below := wait{left, last, a}
	here.wantEdges([]lease.Caller{left}, below)
	here.wantEdges([]lease.Caller{first}, below,
		wait{first, left, b}, wait{first, right, c}, wait{first, left, d})
	there.wantEdges([]lease.Caller{aside, first, left}, below, wait{aside, right, c},
		wait{first, left, b}, wait{first, right, c}, wait{first, left, d})
	there.erase(left)
	here.wantEdges([]lease.Caller{first}, wait{first, right, c})
}

func edgesOfCycle(r *rig) {
	here, there := r.graph()
	a, b, c := r.take("a"), r.take("b"), r.take("c")
	one, two, three := chain(holding(a), "b"), chain(holding(b), "c"), chain(holding(c), "a", "b")
	before := chain(nil, "a")
	here.record(ttl, one, three)
	there.record(ttl, two, before)
	cycle := []wait{{one, two, b}, {two, three, c}, {three, one, a}, {three, two, b}}
	for _, from := range [][]lease.Caller{{one}, {two}, {three}, {one, two, three, one}} {
		here.wantEdges(from, cycle...)
	}
	there.wantEdges([]lease.Caller{before}, append(cycle, wait{before, one, a})...)
	r.wantRelease(b, false)
	here.wantEdges([]lease.Caller{two}, cycle[1], cycle[2])
}

func edgesLimited(r *rig) {
	here, there := r.graph()
	keys := many(r.h.most(12))
	leases, _ := r.takeAll(keys...)
	holder, waits := chain(leases), chain(nil, keys...)
	here.record(ttl, holder, waits)
	for _, limit := range []int{1, 5, len(keys), 100} {
		if got := there.edges(limit, waits); len(got) != min(limit, len(keys)) {
			r.Errorf("%d edges of %d with a limit of %d", len(got), len(keys), limit)
		}
	}
}

func edgesOfAnyKey(r *rig) {
	here, there := r.graph()
	here.wantEdges(nil)
	keys := append([]string{"'\"{}[],\\", "\x00\x00", "\xff\xfe'"}, scattered[:r.h.most(len(scattered))-3]...)
	leases, _ := r.takeAll(keys...)
	holder, waits := chain(leases), chain(nil, keys...)
	here.record(ttl, holder)
	there.record(ttl, waits)
	var want []wait
	for _, l := range leases {
		want = append(want, wait{waits, holder, l})
	}
	here.wantEdges([]lease.Caller{waits}, want...)
	there.erase(waits)
	here.wantEdges([]lease.Caller{waits})
}

// edgesOfMany has each chain wait for what the next holds.
func edgesOfMany(r *rig) {
	here, there := r.graph()
	n := 300
	keys := many(r.h.most(n))
	leases, _ := r.takeAll(keys...)
	ring := make([]lease.Caller, len(keys))
	for i := range ring {
		ring[i] = chain(leases[i:i+1], keys[(i+1)%len(keys)])
	}
	var want []wait
	for i, c := range ring {
		next := (i + 1) % len(ring)
		want = append(want, wait{c, ring[next], leases[next]})
	}
	here.record(ttl, ring...)
	here.record(ttl, ring...)
	there.wantEdges(ring, want...)
	there.wantEdges(ring[:1], want...)
	here.erase(ring...)
	there.wantEdges(ring)
}
