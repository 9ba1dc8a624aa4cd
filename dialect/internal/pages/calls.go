package main

import (
	_ "embed"
	"strings"
)

//go:embed calls.txt
var callsText string

// calls says for each section which call runs it, and how often. See calls.txt.
var calls = parseCalls(callsText)

// parseCalls reads names, each with an indented sentence below it. If a name stands twice, both
// sentences are kept, so that the page shows the mistake.
func parseCalls(text string) map[string]string {
	out, name := make(map[string]string), ""
	for line := range strings.Lines(text) {
		switch says := strings.TrimSpace(line); {
		case says == "" || line[0] == '#':
		case line[0] != ' ':
			name = says
		default:
			out[name] = strings.TrimSpace(out[name] + " " + says)
		}
	}
	return out
}
