package figures

import (
	"go/token"
	"maps"
	"path/filepath"
	"slices"
)

// largestCycle finds the most files of one package of which each leads to each other.
func largestCycle(name, of string, list []*Package) Figure {
	f := Figure{Name: name, Value: 1, Counts: "files of " + of + " that use each other in a cycle"}
	for _, p := range list {
		for _, cycle := range cycles(p.uses()) {
			if len(cycle) > f.Value {
				f.Value = len(cycle)
				f.Why = nil
				for _, file := range cycle {
					f.Why = append(f.Why, p.short()+"/"+file)
				}
			}
		}
	}
	return f
}

// uses returns which files of the package use what is declared in which others.
func (p *Package) uses() map[string]map[string]bool {
	uses := make(map[string]map[string]bool)
	in := func(pos token.Pos) string { return filepath.Base(p.fset.Position(pos).Filename) }
	for id, used := range p.info.Uses {
		if used.Pkg() != p.types || !used.Pos().IsValid() {
			continue
		}
		from, to := in(id.Pos()), in(used.Pos())
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = make(map[string]bool)
		}
		uses[from][to] = true
	}
	return uses
}

// cycles returns the sets of two files or more of which each leads to each other, sorted.
func cycles(uses map[string]map[string]bool) (found [][]string) {
	reached := make(map[string]map[string]bool)
	for from := range uses {
		reached[from] = reachable(uses, from)
	}
	seen := make(map[string]bool)
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		if seen[from] || !reached[from][from] {
			continue
		}
		var cycle []string
		for to := range reached[from] {
			if reached[to][from] {
				cycle, seen[to] = append(cycle, to), true
			}
		}
		slices.Sort(cycle)
		found = append(found, cycle)
	}
	return found
}

// reachable returns the files that from leads to, itself only if it is in a cycle.
func reachable(uses map[string]map[string]bool, from string) map[string]bool {
	reached := make(map[string]bool)
	next := []string{from}
	for len(next) > 0 {
		file := next[0]
		next = next[1:]
		for to := range uses[file] {
			if !reached[to] {
				reached[to] = true
				next = append(next, to)
			}
		}
	}
	return reached
}
