// Package paper is what programs of this module publish: pages in Markdown and charts.
package paper

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Page is a text in Markdown.
type Page struct{ strings.Builder }

// Line writes one as it is.
func (p *Page) Line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// Say is a paragraph or a title.
func (p *Page) Say(format string, args ...any) {
	p.Line("%s\n", wrap(fmt.Sprintf(format, args...), ""))
}

// Item is one of a list.
func (p *Page) Item(format string, args ...any) {
	p.Line("%s", wrap("- "+fmt.Sprintf(format, args...), "  "))
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

// Table begins with its head, whose cells are divided by "|".
func (p *Page) Table(head string, rows [][]string) {
	cells := strings.Split(head, "|")
	p.row(cells)
	p.Line("|%s", strings.Repeat("---|", len(cells)))
	for _, row := range rows {
		p.row(row)
	}
	p.Line("")
}

// row writes what could end a cell so that it does not.
func (p *Page) row(cells []string) {
	for _, cell := range cells {
		p.WriteString("| " + strings.NewReplacer("|", "\\|", "\n", " ").Replace(cell) + " ")
	}
	p.Line("|")
}
