package adapter

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/lease"
)

// A machine and a program can have any name, and no client must fail for it.
func TestEveryDefaultIsAnIdentity(t *testing.T) {
	for _, c := range []struct{ host, program, want string }{
		{"web-1", "orders", "web-1/7/orders"},
		{"web\t1", "or\nders", "web?1/7/or?ders"},
		{"web\xff", "\x00", "web?/7/?"},
		{"w", strings.Repeat("é", 100), "w/7/" + strings.Repeat("é", 62)},
		{"ww", strings.Repeat("é", 100), "ww/7/" + strings.Repeat("é", 61)},
	} {
		got := identityOf(c.host, 7, c.program)
		if got != c.want || CheckIdentity(got) != nil || !utf8.ValidString(got) || len(got) > lease.MaxIdentity {
			t.Errorf("%q on %q is %q, want %q", c.program, c.host, got, c.want)
		}
	}
	if err := CheckIdentity(DefaultIdentity()); err != nil {
		t.Error(err)
	}
}
