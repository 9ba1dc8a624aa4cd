package main

import (
	"fmt"
	"slices"
	"strings"
)

// row counts the mutants of one file on one database.
type row struct{ killed, explained, survived, untried int }

// table prints what a record knows of mutants, a line for each database and file.
func table(mutants []mutant, r *record, why []explained) {
	rows, order := make(map[string]*row), []string{}
	for i := range mutants {
		m := &mutants[i]
		for _, name := range []string{m.db + " " + m.file, m.db + " in all", "all"} {
			if rows[name] == nil {
				rows[name], order = &row{}, append(order, name)
			}
			rows[name].add(m, r, why)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return total(a) - total(b) })
	for _, name := range order {
		t := rows[name]
		fmt.Printf("%s: %d killed, %d explained, %d survived, %d not tried by all tests\n",
			name, t.killed, t.explained, t.survived, t.untried)
	}
}

// total puts sums behind what they are the sums of.
func total(name string) int {
	switch {
	case name == "all":
		return 2
	case strings.HasSuffix(name, " in all"):
		return 1
	}
	return 0
}

func (t *row) add(m *mutant, r *record, why []explained) {
	switch kind := r.of(m).kind; {
	case kind == killed:
		t.killed++
	case explains(why, m) != "":
		t.explained++
	case kind == "", kind == passed:
		t.untried++
	default:
		t.survived++
	}
}
