package lease_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rowlockdb/rowlock/lease"
)

func FuzzAStoredNoteComesApart(f *testing.F) {
	for _, s := range []string{"", "a", "a\tb", "\t", "\v", "a\v\tb", "\x00\xff", strings.Repeat("é", 127)} {
		f.Add("web-1/4711/orders", s)
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, identity, note string) {
		if strings.ContainsAny(identity, "\t\v") {
			return
		}
		for stored, lapses := range map[string]bool{
			lease.StoredNote(identity, note): false, lease.LapsingNote(identity, note): true,
		} {
			if i, n := lease.SplitNote(stored); i != identity || n != note || lease.Lapses(stored) != lapses {
				t.Errorf("of %q and %q are left %q and %q; %q lapses: %t", identity, note, i, n, stored, !lapses)
			}
		}
	})
}

func TestTheLongestStoredNoteHasTheLongestParts(t *testing.T) {
	stored := lease.StoredNote(strings.Repeat("i", lease.MaxIdentity), strings.Repeat("n", lease.MaxNote))
	// 384 is the column's width on MySQL.
	if len(stored) != lease.MaxStoredNote || lease.MaxStoredNote != 384 {
		t.Errorf("%d bytes, MaxStoredNote is %d, want 384", len(stored), lease.MaxStoredNote)
	}
}

// Anyone who may write the table chooses these texts, and a log has one event a line.
func TestAHolderIsDescribedInOneLine(t *testing.T) {
	for _, c := range []struct{ identity, note, want string }{
		{"", "", ""},
		{"web-1/4711/orders", "", "web-1/4711/orders"},
		{"web-1/4711/orders", "nightly import", "web-1/4711/orders (nightly import)"},
		{"", "nightly import", `"nightly import"`},
		{"größer/1/ü", "café ☕", "größer/1/ü (café ☕)"},
		{"a b", "n", `"a b" (n)`},
		{"x", "y) for 9h more (", `x ("y) for 9h more (")`},
		{"x (y) for", "n", `"x (y) for" (n)`},
		{"a\nERROR b", "c\r\nd", `"a\nERROR b" ("c\r\nd")`},
		{"\x1b[31mred", "\u202etxet", `"\x1b[31mred" ("\u202etxet")`},
		{"line\u2028sep", "\u0085", `"line\u2028sep" ("\u0085")`},
		{"caf\xe9", "\x00", `"caf\xe9" ("\x00")`},
		{`back\slash`, `quo"te`, `"back\\slash" ("quo\"te")`},
		{
			strings.Repeat("é", 65), strings.Repeat("n", 256),
			strings.Repeat("é", 64) + "… (" + strings.Repeat("n", 255) + "…)",
		},
	} {
		if got := lease.Describe(c.identity, c.note); got != c.want {
			t.Errorf("%q and %q are described as %s, want %s", c.identity, c.note, got, c.want)
		}
	}
}

func FuzzAHeldErrorIsOneLine(f *testing.F) {
	f.Add("k", "web-1", "a\nb")
	f.Fuzz(func(t *testing.T, key, identity, note string) {
		says := (&lease.HeldError{Key: key, Identity: identity, Note: note, Remaining: time.Second}).Error()
		if i := strings.IndexFunc(says, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q has %q", says, says[i:])
		}
	})
}

func TestAHeldErrorSaysByWhomAndForHowLong(t *testing.T) {
	for want, e := range map[string]lease.HeldError{
		`rowlock: "k" is held`: {},
		`rowlock: "k" is held by web-1 (why) for 1.7s more unless renewed`: {
			Identity: "web-1", Note: "why", Remaining: 1700 * time.Millisecond,
		},
		`rowlock: "k" is held for 1s more unless renewed`: {Remaining: time.Second},
		`rowlock: "k" is held by web-1`:                   {Identity: "web-1"},
		`rowlock: "k" is held by "why"`:                   {Note: "why"},
	} {
		e.Key = "k"
		if got := e.Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What an operator's tool prints of a row.
func ExampleDescribe() {
	r := lease.Record{Note: "web-1/4711/orders\tnightly import"}
	fmt.Println(lease.Describe(lease.SplitNote(r.Note)))
	fmt.Println(r.Identity())
	// Output:
	// web-1/4711/orders (nightly import)
	// web-1/4711/orders
}
