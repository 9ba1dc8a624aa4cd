package main

import "fmt"

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
	for _, name := range order {
		t := rows[name]
		fmt.Printf("%s: %d killed, %d explained, %d survived, %d not tried by all tests\n",
			name, t.killed, t.explained, t.survived, t.untried)
	}
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
