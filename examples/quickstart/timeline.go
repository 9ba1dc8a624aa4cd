package main

import (
	"fmt"
	"strings"
	"time"
)

// timeline draws two processes beside each other, a line an event, while it happens.
type timeline struct {
	s     *story
	began time.Time
	rails [2]string // what stands in a process's column while the other does something
}

const column = 29 // so that all of it fits into 80

func (s *story) timeline(first, second string) *timeline {
	s.line("\n   %-9s%s%s%s", "", pad(first), pad(second), "balance")
	return &timeline{s: s, began: time.Now(), rails: [2]string{" ", " "}}
}

func pad(text string) string { return fmt.Sprintf("%-*s", column, text) }

// add writes what a process did. Its mark is before the text, and its rail below until the next
// event.
func (t *timeline) add(who int, style, mark, rail, text string, balance ...int64) {
	columns := [2]string{pad(t.rails[0]), pad(t.rails[1])}
	columns[who] = t.s.paint(style, pad(mark+" "+text))
	t.rails[who] = rail
	value := strings.Trim(fmt.Sprint(balance), "[]")
	t.s.line("   %s", strings.TrimRight(fmt.Sprintf("%5.2f s  %s%s%s", time.Since(t.began).Seconds(), columns[0], columns[1], value), " "))
}

// quote writes an error's text below the event that brought it.
func (t *timeline) quote(text string) {
	for line := range strings.Lines(text) {
		t.s.line("   %-9s%s   %s", "", t.rails[0], t.s.paint(faint, strings.TrimSpace(line)))
	}
}
