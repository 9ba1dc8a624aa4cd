package locktest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.Graph.
var graphProperties = []property{
	{"a chain has an edge to the chain that holds what it waits for", edgeIsRead},
	{"an edge needs a record of the holder", edgeNeedsHolder},
	{"an identity is given back as it was recorded", edgeIdentity},
	{"a record counts until it expires", recordExpires},
	{"a repeated record keeps its beginning and lives on", recordRepeats},
	{"a record that comes late lives no longer than if it had been in time", recordRepeatsLate},
	{"an erased record has no edge, and no other loses one", recordErased},
	{"what is not recorded can be erased", eraseNothing},
	{"an edge needs the token that the key's row has now, on both sides", edgeNeedsToken},
	{"an edge needs a lease that has not expired", edgeNeedsLease},
	{"calls and processes are compared only with their like", edgeOfItsKind},
	{"chains rank by when they began to wait, whichever was recorded first", edgeRank},
	{"records of waits change no lock", recordsAreBeside},
}

// chains records chains, and reads what they wait for.
type chains struct {
	*rig
	at lease.Graph
	by lease.Party
}

// graph is a process here and one there.
func (r *rig) graph() (here, there chains) {
	r.Helper()
	return r.graphAt(r.here), r.graphAt(r.there())
}

func (r *rig) graphAt(s lease.Store) chains {
	r.Helper()
	at := able[lease.Graph](r, s)
	return chains{r, at, lease.Party{Identity: "test"}}
}

// chain is a chain that is not recorded yet.
func chain(holds []lease.Lease, wants ...string) lease.Caller {
	return lease.Caller{ID: lease.NewOwner(), Holds: holds, Wants: wants, Waited: time.Minute}
}

func holding(leases ...lease.Lease) []lease.Lease { return leases }

func (c chains) record(life time.Duration, all ...lease.Caller) {
	c.Helper()
	if err := c.at.Record(c.ctx, c.by, all, life); err != nil {
		c.Fatalf("record %d chains: %v", len(all), err)
	}
}

func (c chains) erase(all ...lease.Caller) {
	c.Helper()
	if err := c.at.Erase(c.ctx, all); err != nil {
		c.Fatalf("erase %d chains: %v", len(all), err)
	}
}

// edges reads what can be reached from chains, in an order of its own.
func (c chains) edges(limit int, from ...lease.Caller) []lease.Edge {
	c.Helper()
	ids := make([]lease.Owner, len(from))
	for i := range from {
		ids[i] = from[i].ID
	}
	got, err := c.at.Edges(c.ctx, c.by, ids, limit)
	if err != nil {
		c.Fatalf("edges of %d chains: %v", len(from), err)
	}
	slices.SortFunc(got, func(a, b lease.Edge) int {
		return cmp.Or(bytes.Compare(a.From[:], b.From[:]), cmp.Compare(a.Key, b.Key),
			bytes.Compare(a.To[:], b.To[:]))
	})
	return got
}

// wait is the edge of one chain to another that holds l.
type wait struct {
	from, to lease.Caller
	l        lease.Lease
}

// wantEdges wants exactly these edges to be reached from chains.
func (c chains) wantEdges(from []lease.Caller, want ...wait) {
	c.Helper()
	got := c.edges(1000, from...)
	missing := slices.Clone(want)
	for _, e := range got {
		i := slices.IndexFunc(missing, func(w wait) bool {
			return e.From == w.from.ID && e.To == w.to.ID && e.Key == w.l.Key && e.Token == w.l.Token
		})
		if i < 0 {
			c.Errorf("there is an edge %+v", e)
			continue
		}
		missing = slices.Delete(missing, i, i+1)
	}
	for _, w := range missing {
		c.Errorf("no edge from %s to %s, which holds %q with token %d", w.from.ID, w.to.ID, w.l.Key,
			w.l.Token)
	}
}

func edgeIsRead(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	holder, waits := chain(holding(k)), chain(nil, "k")
	here.record(ttl, holder)
	there.record(ttl, waits)
	for _, at := range []chains{here, there} {
		at.wantEdges([]lease.Caller{waits}, wait{waits, holder, k})
		at.wantEdges([]lease.Caller{holder})
		at.wantEdges(nil)
	}
	read := here.edges(10, waits)
	if len(read) != 1 {
		r.Fatalf("read %+v", read)
	}
	e := read[0]
	if d := e.Waited - time.Minute; d < -tolerance || d > r.h.limit() {
		r.Errorf("a chain that has waited a minute has waited %s", e.Waited)
	}
	// The end of its life is as far away as its beginning is past, and its life.
	if d := e.Until - e.Since - time.Minute - ttl; d < -tolerance || d > tolerance {
		r.Errorf("a record lives from %s to %s", e.Since, e.Until)
	}
}

func edgeNeedsHolder(r *rig) {
	here, there := r.graph()
	r.take("k")
	waits := chain(holding(r.take("a")), "k", "free")
	here.record(ttl, waits)
	there.wantEdges([]lease.Caller{waits})
}

func edgeIdentity(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	for _, identity := range []string{"", "web-3 4711 ' \" \\ % é 日本", "{}[],:\t\n"} {
		here.by.Identity = identity
		holder, waits := chain(holding(k)), chain(nil, "k")
		there.record(ttl, holder)
		here.record(ttl, waits)
		if e := there.edges(10, waits); len(e) != 1 || e[0].Identity != identity {
			r.Errorf("recorded as %q, read as %+v", identity, e)
		}
		there.erase(holder)
	}
}

// recordExpires needs no sleep: the record of the shorter life is gone first.
func recordExpires(r *rig) {
	here, there := r.graph()
	k, m := r.take("k"), r.take("m")
	const short = 30 * time.Millisecond
	holder, waits := chain(holding(k)), chain(nil, "k")
	dies, outlives := chain(holding(m)), chain(nil, "m")
	here.record(ttl, holder, outlives)
	here.record(short, waits, dies)
	r.eventually("the records to expire", func() bool {
		return len(there.edges(10, waits)) == 0 && len(there.edges(10, outlives)) == 0
	})
	here.record(ttl, waits)
	there.wantEdges([]lease.Caller{waits, outlives}, wait{waits, holder, k})
	here.record(ttl, dies)
	there.wantEdges([]lease.Caller{waits, outlives}, wait{waits, holder, k}, wait{outlives, dies, m})
}

func recordRepeats(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	holder, waits := chain(holding(k)), chain(nil, "k")
	var read []lease.Edge
	for i := range 3 {
		here.record(ttl+time.Duration(i)*time.Minute, holder, waits)
		e := there.edges(10, waits)
		if len(e) != 1 {
			r.Fatalf("record %d has edges %+v", len(read), e)
		}
		read = append(read, e...)
		waits.Waited += time.Minute // a process whose clock is faster, or whose first record was slow
	}
	for i, e := range read[1:] {
		if e.Since != read[0].Since {
			r.Errorf("it began at %s, and repeated at %s", read[0].Since, e.Since)
		}
		if by := e.Until - read[i].Until; by < time.Minute-tolerance {
			r.Errorf("a life that was extended by a minute is longer by %s", by)
		}
	}
}

// recordRepeatsLate has a statement come late: its chain waited for less than the time that has
// passed since the record that it repeats.
func recordRepeatsLate(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	holder, waits := chain(holding(k)), chain(nil, "k")
	here.record(ttl, holder, waits)
	first := there.edges(10, waits)
	waits.Waited -= 50 * time.Second
	here.record(ttl, waits)
	late := there.edges(10, waits)
	if len(first) != 1 || len(late) != 1 {
		r.Fatalf("first %+v, late %+v", first, late)
	}
	if by := first[0].Until - late[0].Until; by < 50*time.Second-tolerance {
		r.Errorf("a record that is 50 s late ends %s earlier than if it had been in time", by)
	}
	waits.Waited += time.Hour
	here.record(2*ttl, waits)
	if e := there.edges(10, waits); len(e) != 1 || e[0].Until-first[0].Until < ttl-tolerance {
		r.Errorf("extended by %s, it lives from %+v to %+v", ttl, first, e)
	}
}

func recordErased(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	holder, one, other := chain(holding(k)), chain(nil, "k"), chain(nil, "k")
	here.record(ttl, holder, one)
	there.record(ttl, other)
	all := []lease.Caller{one, other}
	here.wantEdges(all, wait{one, holder, k}, wait{other, holder, k})
	here.erase(one)
	here.wantEdges(all, wait{other, holder, k})
	there.erase(holder)
	here.wantEdges(all)
}

func eraseNothing(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	holder, waits := chain(holding(k)), chain(nil, "k")
	here.erase()
	here.erase(waits)
	here.record(ttl, holder)
	here.erase(chain(holding(k), "k"), waits)
	there.record(ttl, waits)
	here.wantEdges([]lease.Caller{waits}, wait{waits, holder, k})
	there.erase(waits)
	there.erase(waits)
}

func edgeNeedsToken(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	holder, waits := chain(holding(k)), chain(nil, "k")
	here.record(ttl, holder)
	there.record(ttl, waits)
	r.wantRelease(k, false)
	there.wantEdges([]lease.Caller{waits})
	next := r.takeAfter(k)
	there.wantEdges([]lease.Caller{waits})
	later := chain(holding(next))
	here.record(ttl, later)
	there.wantEdges([]lease.Caller{waits}) // it may have had the key between
	there.record(ttl, waits)
	there.wantEdges([]lease.Caller{waits}, wait{waits, later, next})
	r.expire("k")
	r.takeAfter(next)
	there.wantEdges([]lease.Caller{waits})
}

func edgeNeedsLease(r *rig) {
	here, there := r.graph()
	k, m := r.take("k"), r.take("m")
	holder, waits := chain(holding(k, m)), chain(nil, "k", "m")
	here.record(ttl, holder)
	there.record(ttl, waits)
	r.expire("k")
	there.wantEdges([]lease.Caller{waits}, wait{waits, holder, m})
}

func edgeOfItsKind(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	process := there
	process.by.Process = true
	call, callWaits := chain(holding(k)), chain(nil, "k")
	whole, wholeWaits := chain(holding(k)), chain(nil, "k")
	here.record(ttl, call, callWaits)
	process.record(ttl, whole, wholeWaits)
	both := []lease.Caller{callWaits, wholeWaits}
	here.wantEdges(both, wait{callWaits, call, k})
	process.wantEdges(both, wait{wholeWaits, whole, k})
	here.erase(call)
	here.wantEdges(both)
}

func edgeRank(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	holder, early, late := chain(holding(k)), chain(nil, "k"), chain(nil, "k")
	early.Waited, late.Waited = time.Hour, 30*time.Minute
	for _, order := range [][]lease.Caller{{early, late}, {late, early}} {
		here.record(ttl, holder)
		for i, c := range order {
			[]chains{here, there}[i].record(ttl, c)
		}
		e, l := here.edges(10, early), here.edges(10, late)
		if len(e) != 1 || len(l) != 1 {
			r.Fatalf("edges %+v and %+v", e, l)
		}
		if by := l[0].Since - e[0].Since; by < 29*time.Minute || by > 31*time.Minute {
			r.Errorf("the waiter that began half an hour later has begun %s later", by)
		}
		here.erase(order...)
	}
}

func recordsAreBeside(r *rig) {
	here, there := r.graph()
	k := r.take("k")
	c := chain(holding(k), "k", "absent")
	here.record(ttl, c)
	there.wantEdges([]lease.Caller{c}, wait{c, c, k})
	r.wantHeld(k)
	here.erase(c)
	r.wantHeld(k)
	if row, ok := r.row("absent"); ok {
		r.Errorf("a key that is waited for has the row %+v", row)
	}
	r.wantRelease(k, false)
	r.takeAfter(k)
}

// many returns n keys.
func many(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%03d", i)
	}
	return keys
}
