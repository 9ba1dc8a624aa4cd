package postgres

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// FuzzPayload: any user of the server may send a message, and what is no key of ours is any key.
func FuzzPayload(f *testing.F) {
	for _, s := range []string{"", "6b", "6B", "6", "zz", "\x00", strings.Repeat("61", lease.MaxKey+1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if key := keyOf(s); len(key) > lease.MaxKey {
			t.Errorf("%q is a key of %d bytes", s, len(key))
		}
		if len(s) > lease.MaxKey {
			return
		}
		if sent := payloadOf(s); keyOf(sent) != s {
			t.Errorf("%q is sent as %q and heard as %q", s, sent, keyOf(sent))
		}
	})
}
