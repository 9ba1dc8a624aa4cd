// Package listing prints tables for people and JSON for programs.
//
// A table has colors on a terminal only, and none if NO_COLOR is set or TERM is dumb. It is as
// wide as the terminal at most: texts lose their middles, then the columns that matter least are
// left out. In a pipe nothing is left out or cut, and a text that is longer than most pushes its
// own row alone aside.
package listing

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf16"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/rowlockdb/rowlock/lease"
	"golang.org/x/term"
)

// Output is where listings go.
type Output struct {
	to    io.Writer
	json  bool
	width int // of the terminal; 0: none
	color bool
	Err   error // of the first write that has failed
}

// Open has the output be on a file, for "table" or "json".
func (o *Output) Open(file *os.File, format string) error {
	if format != "" && format != "table" && format != "json" {
		return fmt.Errorf("%w: -o %q: write table or json", lease.ErrConfig, format)
	}
	o.to, o.json = file, format == "json"
	if term.IsTerminal(int(file.Fd())) {
		o.width = Width(file)
		o.color = colorprofile.Detect(file, os.Environ()) > colorprofile.ASCII
	}
	return nil
}

// Write prints what another package has made, as help.
func (o *Output) Write(text []byte) (int, error) { return len(text), o.print(string(text)) }

// Width returns the columns of a terminal: those it says, or COLUMNS, or 80.
func Width(file *os.File) int {
	if w, _, err := term.GetSize(int(file.Fd())); err == nil && w > 0 {
		return w
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return w
	}
	return 80
}

// IsJSON reports whether programs read.
func (o *Output) IsJSON() bool { return o.json }

// JSON prints a value in one line, with nothing in it that a terminal would obey: a program's
// output is often looked at.
func (o *Output) JSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return o.print(escaped(b.String()))
}

// escaped spells characters that do not print as JSON does: package json leaves those above U+007E
// as they are, among them C1 and what turns the direction of a text. Outside of its strings JSON
// has none of them but the line's end.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Line prints a line.
func (o *Output) Line(format string, args ...any) { _ = o.print(fmt.Sprintf(format+"\n", args...)) }

// print notes a failure: who reads a part of a fence must not be told that it is all.
func (o *Output) print(text string) error {
	_, err := io.WriteString(o.to, text)
	o.Err = cmp.Or(o.Err, err)
	return err
}

// Column is one of a table.
type Column struct {
	Name  string
	Right bool // aligned
	// Rank says what is left out first where there is no room: the largest. 0 stays.
	Rank int
	// Least is the width that a column is not cut below. 0: it is not cut.
	Least int
}

const (
	gap = 2
	// padded is the width to which a column is padded in a pipe at most. One text of a megabyte would
	// make every row as long.
	padded = 80
)

// Table prints rows under their headings.
func (o *Output) Table(columns []Column, rows [][]string) error {
	return o.print(Render(columns, rows, o.width, o.color))
}

var heading = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)

// Render returns a table of a width at most. Width 0 is any.
func Render(columns []Column, rows [][]string, width int, color bool) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	rows = append([][]string{names}, rows...)
	widths := measure(rows)
	if width > 0 {
		fit(columns, widths, width)
	} else {
		for i := range widths {
			widths[i] = min(widths[i], padded)
		}
	}
	var b strings.Builder
	for i, row := range rows {
		text := line(columns, widths, row, width > 0)
		if color && i == 0 {
			text = heading.Render(text)
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

func measure(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], ansi.StringWidth(text))
		}
	}
	return widths
}

// fit makes the widths fit: it cuts what may be cut, then leaves columns out (width -1), then cuts
// the first as far as it must.
func fit(columns []Column, widths []int, width int) {
	for over := total(widths) - width; over > 0; over = total(widths) - width {
		if !shrink(columns, widths, over) && !drop(columns, widths) {
			widths[0] = max(1, widths[0]-over)
			return
		}
	}
}

func total(widths []int) int {
	sum := -gap
	for _, w := range widths {
		if w >= 0 {
			sum += w + gap
		}
	}
	return sum
}

// shrink cuts the widest column that may be cut.
func shrink(columns []Column, widths []int, over int) bool {
	widest := -1
	for i, c := range columns {
		if c.Least > 0 && widths[i] > c.Least && (widest < 0 || widths[i] > widths[widest]) {
			widest = i
		}
	}
	if widest < 0 {
		return false
	}
	widths[widest] -= min(over, widths[widest]-columns[widest].Least)
	return true
}

func drop(columns []Column, widths []int) bool {
	last := -1
	for i, c := range columns {
		if c.Rank > 0 && widths[i] >= 0 && (last < 0 || c.Rank > columns[last].Rank) {
			last = i
		}
	}
	if last >= 0 {
		widths[last] = -1
	}
	return last >= 0
}

func line(columns []Column, widths []int, texts []string, cuts bool) string {
	var cells []string
	for i, text := range texts {
		if widths[i] < 0 {
			continue
		}
		if cuts {
			text = cut(text, widths[i])
		}
		pad := strings.Repeat(" ", max(0, widths[i]-ansi.StringWidth(text)))
		if columns[i].Right {
			text = pad + text
		} else {
			text += pad
		}
		cells = append(cells, text)
	}
	return strings.TrimRight(strings.Join(cells, strings.Repeat(" ", gap)), " ")
}

// cut shortens a text in its middle: keys, and processes, often differ in their end alone.
func cut(text string, width int) string {
	if ansi.StringWidth(text) <= width {
		return text
	}
	head, tail := ansi.Truncate(text, (width-1)/2, ""), text
	for from := max(1, ansi.StringWidth(text)-width); ansi.StringWidth(head+tail) > width; from++ {
		tail = ansi.TruncateLeft(text, from, "…")
	}
	return head + tail
}
