package cycle

import (
	"cmp"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// graph is one reading of the store: who waits for whom.
type graph struct {
	edges map[lease.Owner][]lease.Edge
	// fresh are the chains whose records were extended since they were first read.
	fresh map[lease.Owner]bool
}

// chain is the same for the records that a call has made while it waits. One that was carried out
// late, after the call had erased them, began at another moment.
type chain struct {
	id    lease.Owner
	since time.Duration
}

// reading makes a graph. seen is what it returned the time before: until when each record was to
// live as it was first read.
func reading(edges []lease.Edge, seen map[chain]time.Duration) (
	g graph, now map[chain]time.Duration,
) {
	g = graph{edges: make(map[lease.Owner][]lease.Edge), fresh: make(map[lease.Owner]bool)}
	now = make(map[chain]time.Duration)
	for _, e := range edges {
		g.edges[e.From] = append(g.edges[e.From], e)
		c := chain{e.From, e.Since}
		first, known := seen[c]
		if !known {
			first = e.Until
		}
		now[c], g.fresh[e.From] = first, first < e.Until
	}
	return g, now
}

// last returns the cycle in which chain is the one that began to wait last, its own edge first, or
// nil. Every chain of it is fresh.
func (g graph) last(chain lease.Owner) []lease.Edge {
	return g.through(chain, func(c lease.Owner) bool { return g.fresh[c] && g.compare(c, chain) <= 0 })
}

// through returns a shortest cycle of chains that are let in, from chain to itself, or nil. A chain
// that waits for itself is one.
func (g graph) through(chain lease.Owner, let func(lease.Owner) bool) []lease.Edge {
	if !let(chain) {
		return nil
	}
	to := make(map[lease.Owner]lease.Edge) // by which edge a chain was reached
	for ahead := []lease.Owner{chain}; len(ahead) > 0; ahead = ahead[1:] {
		for _, e := range g.edges[ahead[0]] {
			if _, seen := to[e.To]; seen || !let(e.To) {
				continue
			}
			to[e.To] = e
			if e.To == chain {
				return path(chain, to)
			}
			ahead = append(ahead, e.To)
		}
	}
	return nil
}

// path follows the edges back.
func path(chain lease.Owner, to map[lease.Owner]lease.Edge) (cycle []lease.Edge) {
	for at := chain; ; {
		e := to[at]
		cycle = append(cycle, e)
		if at = e.From; at == chain {
			slices.Reverse(cycle)
			return cycle
		}
	}
}

// compare orders chains by when they began to wait, and those of one moment by their names: every
// process of a cycle chooses the same.
func (g graph) compare(a, b lease.Owner) int {
	return cmp.Or(cmp.Compare(g.since(a), g.since(b)), slices.Compare(a[:], b[:]))
}

func (g graph) since(chain lease.Owner) time.Duration {
	if edges := g.edges[chain]; len(edges) > 0 {
		return edges[0].Since
	}
	return 0
}

// links says in a cycle's order who waits for what.
func links(cycle []lease.Edge) []lease.Link {
	out := make([]lease.Link, len(cycle))
	for i, e := range cycle {
		out[i] = lease.Link{Key: e.Key, Token: e.Token, Identity: e.Identity, Waited: e.Waited}
	}
	return out
}
