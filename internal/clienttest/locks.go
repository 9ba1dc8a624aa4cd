package clienttest

import (
	"runtime"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// TakeAll locks free keys together.
func TakeAll(t *testing.T, c *rowlock.Client, keys ...string) *rowlock.Locks {
	t.Helper()
	l, err := c.TryLockAll(t.Context(), keys)
	if err != nil {
		t.Fatalf("TryLockAll %q: %v", keys, err)
	}
	t.Cleanup(func() { runtime.KeepAlive(l) })
	return l
}

// WantHolds fails the test unless these of the keys a, b, c and d are held.
func WantHolds(t *testing.T, s lease.Store, keys string) {
	t.Helper()
	for _, key := range strings.Split("a b c d", " ") {
		if want := strings.Contains(keys, key); IsHeld(t, s, key) != want {
			t.Errorf("%q is held: %t, want %t", key, !want, want)
		}
	}
}

// UnlockAll releases locks, without an error.
func UnlockAll(t *testing.T, l *rowlock.Locks) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}
