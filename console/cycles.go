package console

import (
	"bytes"
	"slices"

	"github.com/rowlockdb/rowlock/console/internal/tables"
	"github.com/rowlockdb/rowlock/lease"
)

// cycle is callers each of which waits for a key that the next one holds, and the last for the
// first's.
type cycle []tables.Edge

// cycles returns disjoint cycles among edges. None is left among the other edges, so that there is
// none if there is no cycle at all.
func cycles(edges []tables.Edge) (found []cycle) {
	edges = slices.Clone(edges)
	slices.SortFunc(edges, func(a, b tables.Edge) int {
		return cmpEdge(a, b)
	})
	for {
		edges = inner(edges)
		if len(edges) == 0 {
			return found
		}
		one := follow(edges)
		found = append(found, one)
		edges = slices.DeleteFunc(edges, func(e tables.Edge) bool { return slices.Contains(one, e) })
	}
}

func cmpEdge(a, b tables.Edge) int {
	if n := bytes.Compare(a.From[:], b.From[:]); n != 0 {
		return n
	}
	return bytes.Compare([]byte(a.Key), []byte(b.Key))
}

// inner leaves out edges that are on no way from a cycle to a cycle.
func inner(edges []tables.Edge) []tables.Edge {
	for {
		from, to := make(map[lease.Owner]bool), make(map[lease.Owner]bool)
		for _, e := range edges {
			from[e.From], to[e.To] = true, true
		}
		before := len(edges)
		edges = slices.DeleteFunc(edges, func(e tables.Edge) bool { return !from[e.To] || !to[e.From] })
		if len(edges) == before {
			return edges
		}
	}
}

// follow walks along edges, each of which leads to another, until it comes by again.
func follow(edges []tables.Edge) cycle {
	next := make(map[lease.Owner]tables.Edge)
	for _, e := range slices.Backward(edges) {
		next[e.From] = e
	}
	var walk cycle
	at := make(map[lease.Owner]int)
	for here := edges[0].From; ; {
		if first, been := at[here]; been {
			return walk[first:]
		}
		at[here] = len(walk)
		walk = append(walk, next[here])
		here = next[here].To
	}
}
