package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed explained.txt
var explanations string

// explained is a mutant that may survive, and why.
type explained struct {
	databases []string
	// mutant is its name without the database and the folder.
	mutant, why string
}

// parse reads explained.txt: databases, mutant and reason, between " | ". A line that begins with #
// is a comment.
func parse(text string) (out []explained, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 3 {
			return nil, fmt.Errorf("explained.txt: %q has %d parts, want databases | mutant | reason",
				line, len(parts))
		}
		out = append(out, explained{strings.Fields(parts[0]), parts[1], parts[2]})
	}
	return out, nil
}

// explains returns why a mutant may survive, or "".
func explains(list []explained, m *mutant) string {
	for _, e := range list {
		if e.mutant == m.brief() && slices.Contains(e.databases, m.db) {
			return e.why
		}
	}
	return ""
}

// stale returns the explanations of mutants that there are not.
func stale(list []explained, db string, mutants []mutant) (out []string) {
	for _, e := range list {
		known := func(m mutant) bool { return m.brief() == e.mutant }
		if slices.Contains(e.databases, db) && !slices.ContainsFunc(mutants, known) {
			out = append(out, db+" "+e.mutant)
		}
	}
	return out
}

// brief is the name without what differs between dialects.
func (m *mutant) brief() string {
	file := strings.TrimPrefix(strings.TrimPrefix(m.file, "dialect/"), folder(m.db)+"/")
	return fmt.Sprintf("%s:%s: %s", file, m.statement, m.guard)
}
