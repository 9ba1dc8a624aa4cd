package main

import (
	"regexp"
	"strings"
)

// kind is what a token of SQL is.
type kind int

const (
	word kind = iota
	sign
	// edge is the beginning or the end of what one server alone reads: /*M! … */, /*!80000 … */.
	edge
)

// lexeme is a token of a statement. Comments are none, and a string is a word.
type lexeme struct {
	kind kind
	text string
	// from and to are where it stands in the statement.
	from, to int
	// depth is how many parentheses and CASEs are open around it. Those that open and close have
	// the depth of what stands outside.
	depth int
	// server is which server alone reads it: "mariadb", "mysql", or "" if all do.
	server string
}

var pieces = regexp.MustCompile(`(?s)^(?:` + strings.Join([]string{
	`(?P<space>\s+|--[^\n]*|/\*[^!M].*?\*/)`,
	`(?P<edge>/\*M?![0-9]*|\*/)`,
	`(?P<word>'(?:[^']|'')*'|[A-Za-z_@$?` + "`" + `][\w@$` + "`" + `]*(?:\.[\w@` + "`" + `]+)*|[0-9]+)`,
	`(?P<sign><>|<=|>=|:=|::|->>|\|\||.)`,
}, "|") + `)`)

// lex cuts a statement into its tokens.
func lex(sql string) (out []lexeme) {
	depth, server := 0, ""
	for at := 0; at < len(sql); {
		m := pieces.FindStringSubmatchIndex(sql[at:])
		l := lexeme{text: sql[at : at+m[1]], from: at, to: at + m[1]}
		at += m[1]
		if m[2] >= 0 { // space
			continue
		}
		l.kind = kindOf(m)
		if l.kind == edge {
			server = reader(l.text)
		}
		if closes(&l) {
			depth--
		}
		l.depth, l.server = depth, server
		if opens(&l) {
			depth++
		}
		out = append(out, l)
	}
	return out
}

func kindOf(m []int) kind {
	switch {
	case m[4] >= 0:
		return edge
	case m[6] >= 0:
		return word
	}
	return sign
}

func reader(mark string) string {
	switch {
	case strings.HasPrefix(mark, "/*M"):
		return "mariadb"
	case strings.HasPrefix(mark, "/*!"):
		return "mysql"
	}
	return ""
}

func opens(l *lexeme) bool  { return l.text == "(" || l.is("CASE") }
func closes(l *lexeme) bool { return l.text == ")" || l.is("END") }

// is reports whether l is one of these words, which SQL writes in either case.
func (l *lexeme) is(words ...string) bool {
	for _, w := range words {
		if l.kind == word && strings.EqualFold(l.text, w) {
			return true
		}
	}
	return false
}
