package ring_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/ring"
)

func TestRingsOfWaitsAreFound(t *testing.T) {
	ends := func(w string) (from, to byte) { return w[0], w[1] }
	for waits, want := range map[string]string{
		"": "", "ab bc": "", "ab ba": "ab ba", "ab bc ca": "ab bc ca", "ab ac bd cd": "",
		"ab ba cd dc": "ab ba, cd dc", "xa ab ba": "ab ba", "ab ba ac ca": "ab ba, ac ca", "aa": "aa",
	} {
		var got []string
		for _, r := range ring.Of(strings.Fields(waits), ends) {
			got = append(got, strings.Join(r, " "))
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%q has the rings %q, want %q", waits, all, want)
		}
	}
}
