package console_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// asNumber is where console.js reads a number.
var asNumber = regexp.MustCompile(`(?:Number|parseInt|parseFloat|BigInt|lagOf)\(([^)]*)`)

// The console sends pages, and no JSON. Each digit of a token is in their text, and console.js
// compares tokens as the texts that they are.
func TestEachDigitOfATokenIsShown(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		e.ForgetEras(t) // so that tokens are of an era of today
		b := newBed(t, e, nil)
		l := b.lock("held")
		if l.Token() < 1<<53 {
			t.Errorf("token %d is of no era of today", l.Token())
		}
		taken, err := b.client.ForceRelease(t.Context(), b.lock("stuck").Key(), rowlock.Force{Reason: "stuck"})
		if err != nil {
			t.Fatal(err)
		}
		for path, token := range map[string]rowlock.Token{
			"": l.Token(), "?sort=age": l.Token(), "key?k=held": l.Token(), "records": taken.Lease.Token,
		} {
			b.wants(path, token.String())
		}
		read := asNumber.FindAllStringSubmatch(b.wants("console.js", "dataset.token !== form.dataset.token"), -1)
		for _, what := range read {
			if strings.Contains(what[1], "token") {
				t.Errorf("console.js reads a token as a number: %s", what[0])
			}
		}
		if len(read) == 0 {
			t.Error("console.js reads no number: this test finds nothing")
		}
	})
}
