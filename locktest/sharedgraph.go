package locktest

import "github.com/rowlockdb/rowlock/lease"

// sharing is a chain that waits to share keys beside others.
func sharing(holds []lease.Lease, keys ...string) lease.Caller {
	c := chain(holds)
	c.Shares = keys
	return c
}

func sharesAwait(r *rig) {
	r.sharer()
	here, _ := r.graph()
	k, l := r.take("k"), r.take("l")
	holder := chain(holding(k, l))
	waits := sharing(nil, "k")
	waits.Wants = []string{"l"}
	here.record(ttl, holder, waits)
	here.wantEdges([]lease.Caller{waits}, wait{waits, holder, k}, wait{waits, holder, l})
	here.erase(waits)
	here.wantEdges([]lease.Caller{waits})
	r.wantHeld(k)
}

func sharesDoNotAwaitReaders(r *rig) {
	here, there := r.graph()
	first := r.group("k")
	second, l := r.share("k"), r.take("l")
	readers := []lease.Caller{chain(holding(first)), chain(holding(second))}
	here.record(ttl, readers...)
	waits, bare := sharing(holding(l), "k"), chain(nil, "k")
	there.record(ttl, waits, bare)
	here.wantEdges([]lease.Caller{waits})
	here.wantEdges([]lease.Caller{bare}, wait{bare, readers[0], first}, wait{bare, readers[1], second})
}

func sharesDoNotAwaitDowngraded(r *rig) {
	r.sharer()
	here, _ := r.graph()
	k, l := r.take("k"), r.take("l")
	holder, waits := chain(holding(k)), sharing(holding(l), "k")
	here.record(ttl, holder, waits)
	here.wantEdges([]lease.Caller{waits}, wait{waits, holder, k})
	r.downgrade(k)
	here.wantEdges([]lease.Caller{waits})
}
