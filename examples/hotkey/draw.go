package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const (
	width = 36 // of the longest bar, and of what is shown of the past
	steps = "▁▂▃▄▅▆▇█"

	green = "32"
	blue  = "36"
)

// wipe removes what was drawn, so that it can be drawn again below what is printed now.
func (s *show) wipe() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// draw draws a bar for each hot key in the colour of where it is, and how many statements the
// database has been sent of late.
func (s *show) draw() {
	if !s.terminal || len(s.past) == 0 {
		return
	}
	most := max(slices.Max(s.now.hot), s.now.cold, 1)
	lines := []string{""}
	for i, key := range hotKeys {
		lines = append(lines, bar(key, s.where(key), s.now.hot[i], most))
	}
	lines = append(lines,
		bar(fmt.Sprintf("%d others", len(s.load.cold)), "database", s.now.cold, most),
		fmt.Sprintf("  %-11s %-9s %s %6.0f statements/s", "", "", spark(s.past), s.now.sent))
	_, _ = io.WriteString(s.out, strings.Join(lines, "\n")+"\n")
	s.drawn = len(lines)
}

func bar(name, where string, rate, most float64) string {
	colour := green
	if where == "cluster" {
		colour = blue
	}
	full := int(width*rate/most + 0.5)
	return fmt.Sprintf("  %-11s %s %s%s %6.0f locks/s", name, paint(colour, fmt.Sprintf("%-9s", where)),
		paint(colour, strings.Repeat("█", full)), strings.Repeat(" ", width-full), rate)
}

func spark(past []float64) string {
	past = past[max(0, len(past)-width):]
	most, scale := max(slices.Max(past), 1), []rune(steps)
	var b strings.Builder
	for _, p := range past {
		b.WriteRune(scale[int(p/most*float64(len(scale)-1)+0.5)])
	}
	return b.String() + strings.Repeat(" ", width-len(past))
}

func paint(colour, text string) string {
	if os.Getenv("NO_COLOR") != "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
