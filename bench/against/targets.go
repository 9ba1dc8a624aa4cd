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
	p.Say("# Targets of the benchmarks")
	p.Say("What the developers of rowlock have set themselves, and what the last `make bench` found. Users want " +
		"[results.md](results.md); the targets are here so that a change that slows rowlock shows.")
	p.Say("A ratio is that of medians, with its bootstrap interval of 95 %% in brackets. The median decides " +
		"between MET and MISSED. Where the target lies within the interval, another run may decide otherwise.")
	var rows [][]string
	for _, row := range v.rows {
		rows = append(rows, []string{row.what, row.found, row.target, row.mark})
	}
	p.Table("what|found|target|", rows)
	p.Line("%s", strings.TrimSpace(missed))
	return p
}
