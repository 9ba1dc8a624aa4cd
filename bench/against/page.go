package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// page is a text in Markdown.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// say is a paragraph or a title.
func (p *page) say(format string, args ...any) {
	p.line("%s\n", wrap(fmt.Sprintf(format, args...), ""))
}

// item is one of a list.
func (p *page) item(format string, args ...any) {
	p.line("%s", wrap("- "+fmt.Sprintf(format, args...), "  "))
}

// columns is how long a line may be, unless it is of a table.
const columns = 100

// wrap breaks a text into lines, of which all but the first begin with the indent.
func wrap(text, indent string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// table begins with its head, whose cells are divided by "|".
func (p *page) table(head string, rows [][]string) {
	cells := strings.Split(head, "|")
	p.row(cells)
	p.line("|%s", strings.Repeat("---|", len(cells)))
	for _, row := range rows {
		p.row(row)
	}
	p.line("")
}

// row writes what could end a cell so that it does not.
func (p *page) row(cells []string) {
	for _, cell := range cells {
		p.WriteString("| " + strings.NewReplacer("|", "\\|", "\n", " ").Replace(cell) + " ")
	}
	p.line("|")
}
