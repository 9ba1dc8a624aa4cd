package once_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/wire"
	"github.com/rowlockdb/rowlock/once"
)

// A key may be repeated to a process of another version, which compares the fingerprints.
func TestFingerprintsAreAsReleased(t *testing.T) {
	f := wire.New("The fingerprint of a request, by its parts with | between.",
		"repeats of requests that a released version has done: they end with ErrMismatch",
		"what is stored for later")
	for _, parts := range []string{"", "ab|c", "a|bc", "abc", "|", "POST|/orders|{\"id\":7}", "\xff\x00"} {
		var of [][]byte
		for part := range strings.SplitSeq(parts, "|") {
			of = append(of, []byte(part))
		}
		f.Add("fingerprint of "+hex.EncodeToString([]byte(parts)), "%x", once.Fingerprint(of...))
	}
	f.Add("fingerprint of no parts", "%x", once.Fingerprint())
	f.Match(t, "../testdata/wire/once.txt")
}
