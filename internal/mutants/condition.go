package main

import (
	"regexp"
	"strings"
)

// identity is a condition that says which row is meant. A statement without it is not one without
// a guard but a different statement.
var identity = regexp.MustCompile(`(?i)^(?:` + strings.Join([]string{
	"(?:@?\\w+\\.)?[@`]?(?:key|bucket|kind|name|phase|party|rowid|ctid|n)`? (?:=|>=|<|>|<=|IN) ",
	`\(\w+, \w+(?:, \w+)?\) (?:IN|>) `,
	`true$`,
}, "|") + `)`)

// ends are the words that end a condition.
var ends = []string{
	"ORDER", "GROUP", "LIMIT", "FOR", "LOCK", "RETURNING", "UNION", "ON", "WHERE", "SET", "JOIN",
	"STRAIGHT_JOIN", "CROSS", "INNER", "THEN", "WINDOW", "HAVING", "OFFSET", "LEFT",
}

// condition finds the guards of a condition that begins after the i-th token.
func (f *finder) condition(i int) {
	switch {
	case f.word(i, "WHERE", "HAVING"), f.word(i, "ON") && !f.word(i+1, "CONFLICT", "DUPLICATE"):
		f.split(i+1, f.end(i+1), false)
	case f.assigned(i):
		f.split(i+2, f.end(i+2), false)
	}
}

// assigned reports whether the i-th token begins the condition of a value that is written: a = CASE
// WHEN … or a = IF(…). The same in what a statement returns is no guard, because another statement
// decides.
func (f *finder) assigned(i int) bool {
	if !f.sign(i-1, "=") {
		return false
	}
	return f.word(i, "CASE") && f.word(i+1, "WHEN") || f.word(i, "IF", "IIF") && f.sign(i+1, "(")
}

// end returns where the condition that begins at the i-th token ends.
func (f *finder) end(i int) int {
	if i >= len(f.tokens) {
		return i
	}
	depth := f.tokens[i].depth
	for j := i; j < len(f.tokens); j++ {
		switch t := &f.tokens[j]; {
		case t.depth < depth, t.kind == edge, t.depth == depth && t.text == ",":
			return j
		case t.depth == depth && t.is(ends...) && !(t.is("LEFT") && f.sign(j+1, "(")):
			return j
		}
	}
	return len(f.tokens)
}

// split finds the guards among the terms of a condition. Of "a AND b" each is one. Of "a OR b AND
// c" within parentheses, the whole is one, and b and c are: without a the whole always holds.
func (f *finder) split(i, j int, within bool) {
	arms := f.cut(i, j, "OR")
	for _, arm := range arms {
		terms := f.cut(arm[0], arm[1], "AND")
		if within && len(terms) == 1 && len(arms) > 1 {
			continue
		}
		for _, t := range terms {
			f.term(t[0], t[1])
		}
	}
}

func (f *finder) term(i, j int) {
	if i >= j {
		return
	}
	text := f.text(i, j)
	if !identity.MatchString(short(text)) {
		f.add(short(text), i, j, "("+text+" OR 1 = 1)")
	}
	if f.sign(i, "(") && f.closing(i) == j-1 {
		f.split(i+1, j-1, true)
	}
}

// closing returns where the parenthesis closes that the i-th token opens.
func (f *finder) closing(i int) int {
	for j := i + 1; j < len(f.tokens); j++ {
		if f.tokens[j].depth == f.tokens[i].depth && closes(&f.tokens[j]) {
			return j
		}
	}
	return len(f.tokens)
}

// cut cuts the tokens from i to j at a word, but not at the AND of a BETWEEN.
func (f *finder) cut(i, j int, at string) (parts [][2]int) {
	between := false
	for n := i; n < j; n++ {
		if f.tokens[n].depth != f.tokens[i].depth {
			continue
		}
		switch {
		case f.word(n, "BETWEEN"):
			between = true
		case f.word(n, at) && at == "AND" && between:
			between = false
		case f.word(n, at):
			parts, i = append(parts, [2]int{i, n}), n+1
		}
	}
	return append(parts, [2]int{i, j})
}
