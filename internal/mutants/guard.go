package main

import (
	"fmt"
	"regexp"
	"strings"
)

// guard is a piece of a statement, and the text that breaks it.
type guard struct {
	// name is the piece in short, with a number after it if an earlier one of the statement has
	// the same name.
	name string
	// from and to are where the piece stands in the statement, and broken is what replaces it.
	from, to int
	broken   string
	// server alone reads it: "mariadb" or "mysql". "" means all.
	server string
}

// guards returns the guards of a statement in the order in which they stand.
func guards(sql string) []guard {
	f := &finder{sql: sql, tokens: lex(sql)}
	for i := range f.tokens {
		f.condition(i)
		f.lock(i)
		f.growth(i)
		f.bound(i)
		f.order(i)
	}
	return f.named()
}

type finder struct {
	sql    string
	tokens []lexeme
	found  []guard
}

// add notes that the tokens from the i-th to before the j-th are a guard.
func (f *finder) add(name string, i, j int, broken string) {
	first, last := f.tokens[i], f.tokens[j-1]
	f.found = append(f.found, guard{name, first.from, last.to, broken, first.server})
}

func (f *finder) text(i, j int) string { return f.sql[f.tokens[i].from:f.tokens[j-1].to] }

// word reports whether the i-th token is one of these words.
func (f *finder) word(i int, words ...string) bool {
	return i >= 0 && i < len(f.tokens) && f.tokens[i].is(words...)
}

func (f *finder) sign(i int, text string) bool {
	return i >= 0 && i < len(f.tokens) && f.tokens[i].kind == sign && f.tokens[i].text == text
}

// named numbers what has the same name.
func (f *finder) named() []guard {
	seen := make(map[string]int)
	for i := range f.found {
		g := &f.found[i]
		if seen[g.name]++; seen[g.name] > 1 {
			g.name = fmt.Sprintf("%s #%d", g.name, seen[g.name])
		}
	}
	return f.found
}

var (
	// clock is how each database reads its clock.
	clock   = regexp.MustCompile(`CAST\(unixepoch\('subsec'\) \* 1000 AS INTEGER\)|\w*clock_timestamp\(\)|UTC_TIMESTAMP\(6\)`)
	comment = regexp.MustCompile(`(?m)--.*$`)
	spaces  = regexp.MustCompile(`\s+`)
	// parameter is a parameter's name and type. Dialects and statements number them differently.
	parameter = regexp.MustCompile(`(?:\?|\$)\d+(?:::\w+)?`)
)

const longestName = 90

// short is a piece of SQL on one line, with now for the clock and ? for a parameter, so that the
// same guard has the same name in every dialect.
func short(sql string) string {
	s := spaces.ReplaceAllString(comment.ReplaceAllString(sql, ""), " ")
	s = strings.TrimSpace(clock.ReplaceAllString(s, "now"))
	s = strings.ReplaceAll(parameter.ReplaceAllString(s, "?"), "`", "")
	if len(s) > longestName {
		return strings.ToValidUTF8(s[:longestName], "") + "…"
	}
	return s
}
