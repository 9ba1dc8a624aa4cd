package main

import (
	_ "embed"
	"strings"
)

// missed says why targets are missed.
//
//go:embed missed.md
var missed string

// targets is a page for developers.
func targets(v *verdicts) *page {
	p := new(page)
	p.say("# Targets of the benchmarks")
	p.say("What the developers of rowlock have set themselves, and what the last `make bench` found. Users want " +
		"[results.md](results.md); the targets are here so that a change that slows rowlock shows.")
	var rows [][]string
	for _, row := range v.rows {
		rows = append(rows, []string{row.what, row.found, row.target, row.mark})
	}
	p.table("what|found|target|", rows)
	p.line("%s", strings.TrimSpace(missed))
	return p
}
