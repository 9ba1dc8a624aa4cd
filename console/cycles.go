package console

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/rowlockdb/rowlock/internal/ring"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
)

// cycles returns disjoint cycles among edges, the same whatever their order: callers each of which
// waits for a key that the next one holds, and the last for the first's. A process that waits for a
// key of its own is none: the call that holds it may go on.
func cycles(edges []shown.Edge) [][]shown.Edge {
	edges = slices.DeleteFunc(slices.Clone(edges), func(e shown.Edge) bool { return e.Process && e.From == e.To })
	slices.SortFunc(edges, func(a, b shown.Edge) int {
		return cmp.Or(bytes.Compare(a.From[:], b.From[:]), cmp.Compare(a.Key, b.Key))
	})
	return ring.Of(edges, func(e shown.Edge) (from, to lease.Owner) { return e.From, e.To })
}
