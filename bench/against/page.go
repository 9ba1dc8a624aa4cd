package main

import (
	"fmt"
	"strings"
)

// page is a text in Markdown.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// say is a paragraph.
func (p *page) say(format string, args ...any) { p.line(format+"\n", args...) }

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
