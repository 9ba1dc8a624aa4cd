// Package ring finds rings among waits: each waits for the next, and the last for the first.
package ring

import "slices"

// Of returns rings among waits, none of which shares a wait with another. No ring is left among the
// other waits, so that there is none if there is no ring at all. ends are what waits, and for what.
func Of[W, N comparable](waits []W, ends func(W) (from, to N)) (rings [][]W) {
	waits = slices.Clone(waits)
	for {
		if waits = inner(waits, ends); len(waits) == 0 {
			return rings
		}
		one := follow(waits, ends)
		rings = append(rings, one)
		waits = slices.DeleteFunc(waits, func(w W) bool { return slices.Contains(one, w) })
	}
}

// inner leaves out waits that are on no way from a ring to a ring.
func inner[W, N comparable](waits []W, ends func(W) (from, to N)) []W {
	for {
		froms, tos := make(map[N]bool), make(map[N]bool)
		for _, w := range waits {
			from, to := ends(w)
			froms[from], tos[to] = true, true
		}
		before := len(waits)
		waits = slices.DeleteFunc(waits, func(w W) bool {
			from, to := ends(w)
			return !froms[to] || !tos[from]
		})
		if len(waits) == before {
			return waits
		}
	}
}

// follow walks along waits, each of which leads to another, until it comes by again.
func follow[W, N comparable](waits []W, ends func(W) (from, to N)) (walk []W) {
	next := make(map[N]W)
	for _, w := range slices.Backward(waits) {
		from, _ := ends(w)
		next[from] = w
	}
	at := make(map[N]int)
	for here, _ := ends(waits[0]); ; _, here = ends(next[here]) {
		if first, been := at[here]; been {
			return walk[first:]
		}
		at[here] = len(walk)
		walk = append(walk, next[here])
	}
}
