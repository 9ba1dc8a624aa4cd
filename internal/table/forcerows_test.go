package table_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A lease that is forced to end is one that the row names, at this placement.
func TestAForcedReleaseReadsOnlyTheRowThatItMayEnd(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		ofHolder := string(holder[:]) + " 5 "
		for _, c := range []struct{ section, set, want string }{
			{"force-lock", "note = note", ofHolder},
			{"force-lock", expired, ofHolder},
			{"force-lock", freed, ""},
			{"force-lock", moved, ""},
			{"force-placement", "note = note", "0"},
			{"force-placement", moved, "1"},
		} {
			ready(t, e, c.set)
			if got := told(e, t, &onGroup{section: c.section, args: fixed(k)}); got != c.want {
				t.Errorf("%s after %s: %q, want %q", c.section, c.set, got, c.want)
			}
		}
	})
}

// The token that follows the last one is no token of a row.
func TestAForcedReleaseWritesNoTokenBeyondTheLast(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for next, want := range map[lease.Token]lease.Token{6: 6, lease.MaxToken: lease.MaxToken - 1} {
			ready(t, e, "note = note")
			n, err := sessionOf(t, e).Change(t.Context(), e.Dialect.Text("force-end"), next, k, holder[:], 5)
			if _, token := owned(t, e); err != nil || n != 1 || token != want {
				t.Errorf("%d rows, %v, and token %d, want %d", n, err, token, want)
			}
		}
	})
}
