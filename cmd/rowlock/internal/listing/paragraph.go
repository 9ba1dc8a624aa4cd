package listing

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Paragraph prints a text behind so many spaces, wrapped at the width of the terminal. Nothing is
// cut. In a pipe it is one line.
func (o *Output) Paragraph(indent int, text string) {
	if o.width > 0 {
		indent = min(indent, o.width/4)
		text = ansi.Wrap(text, o.width-indent, "")
	}
	space := strings.Repeat(" ", indent)
	for line := range strings.SplitSeq(text, "\n") {
		o.Line("%s", strings.TrimRight(space+line, " "))
	}
}

// Colored prints a line in a color, if the terminal has any.
func (o *Output) Colored(c color.Color, text string) {
	if o.color {
		text = lipgloss.NewStyle().Bold(true).Foreground(c).Render(text)
	}
	o.Paragraph(0, text)
}
