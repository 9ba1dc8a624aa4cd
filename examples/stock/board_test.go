package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A chart that is drawn anew starts where it started before.
func TestTheBoardIsDrawnInPlace(t *testing.T) {
	var out strings.Builder
	b := &board{out: &out, terminal: true}
	b.draw("\nselling\n")
	first := strings.Count(out.String(), "\n")
	out.Reset()
	b.add(result{way: way{name: "a lock"}, items: 5, sold: 5, orders: 7})
	b.draw("")
	if up := "\x1b[3A\x1b[J"; first != 3 || !strings.HasPrefix(out.String(), up) || b.drawn != 2 {
		t.Errorf("%d lines, then %q, then %d lines", first, out.String(), b.drawn)
	}
}

func TestTheChartLinesUpAndFitsATerminal(t *testing.T) {
	fast := result{way: way{name: "optimistic, shelves"}, items: 100000, sold: 100000, orders: 123456}
	slow, slowest, bad, lucky := fast, fast, fast, fast
	slow.name, slow.sold, slow.left, slow.orders = "a lock", 1, 99999, 61728
	slowest.name, slowest.orders = "on a busy server", 8
	bad.name, bad.unsafe, bad.sold, bad.left = "no lock at all", true, 999999, 99000
	lucky.name, lucky.unsafe = "no lock at all", true
	var out strings.Builder
	chart(&out, []result{fast, slow, slowest, bad, lucky})
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	bar := func(line string) string {
		return string([]rune(line)[len("optimistic, shelves   sold   left  orders/s  ")-1:])
	}
	for i, want := range []string{strings.Repeat("█", width), strings.Repeat("█", (width+1)/2), "█", "✗ oversold: 999999 sales, 1000 gone", "✗ nothing keeps two from one item"} {
		if got := strings.TrimSpace(bar(lines[i+1])); got != want {
			t.Errorf("drawn %q, want %q", got, want)
		}
	}
}
