package listing

import (
	"fmt"
	"image/color"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dustin/go-humanize"
)

// Span shows a duration in two units at most: 850ms, 12s, 4m05s, 3h07m, 12d04h.
func Span(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Plain returns a text that any program chose so that it cannot do anything to a terminal.
func Plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Count shows a number with separators: 1,000,000.
func Count(n int) string { return humanize.Comma(int64(n)) }

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
