package listing

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A terminal of 80 columns has no room for a customer's key and a pod's name. What tells them from
// the next stays.
func TestKeysThatDifferInTheirEndDifferInANarrowTable(t *testing.T) {
	columns := []Column{
		{Name: "KEY", Least: 24},
		{Name: "HOLDER", Least: 16, Rank: 1},
		{Name: "AGE", Right: true, Rank: 2},
		{Name: "TOKEN", Right: true, Rank: 3},
	}
	customer, pod := "shop/customers/0192f1c4-7a3e-7cc1-9d0e-2b7c5a1f9e1", "web-6d4b9c7f5-k8wzp/471"
	for _, width := range []int{40, 60, 80, 100} {
		table := Render(columns, [][]string{
			{customer + "1", pod + "1", "2h00m", "104638397058210304"},
			{customer + "2", pod + "2", "3.0s", "104638397058210305"},
		}, width, false)
		lines := strings.Split(strings.TrimSpace(table), "\n")
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%d columns, want %d at most: %s", n, width, line)
			}
		}
		first, second := strings.Fields(lines[1]), strings.Fields(lines[2])
		if first[0] == second[0] || width > 40 && first[1] == second[1] {
			t.Errorf("rows cannot be told apart at %d columns:\n%s", width, table)
		}
	}
}

// A process that waits may hold a thousand keys, and one line has them all.
func TestALongTextIsCutAtOnce(t *testing.T) {
	text := strings.Repeat("shop/orders/鍵 ", 20_000)
	if got := cut(text, 30); !strings.HasPrefix(got, "shop/orders/") || !strings.HasSuffix(got, "ders/鍵 ") || ansi.StringWidth(got) > 30 {
		t.Errorf("cut to %q", got)
	}
}

func FuzzACutTextIsAsWideAsItMayBe(f *testing.F) {
	f.Add("shop/orders/1042", 12)
	f.Add("鍵/注文/千四十二", 7)
	f.Add("é́́/e\u0301nde", 3)
	f.Add("ab", 1)
	f.Fuzz(func(t *testing.T, text string, width int) {
		text = Plain(text) // as every column has it
		if width < 1 || width > 1000 {
			return
		}
		got := cut(text, width)
		if n := ansi.StringWidth(got); n > width {
			t.Errorf("%q cut to %d is %q, %d wide", text, width, got, n)
		}
		if ansi.StringWidth(text) <= width && got != text {
			t.Errorf("%q fits %d and was cut to %q", text, width, got)
		}
	})
}
