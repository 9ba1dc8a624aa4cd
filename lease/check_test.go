package lease_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// A database that is lax cuts a longer note, and SQLite keeps all of it.
func TestANoteThatIsLongerThanAStoreKeepsIsRefused(t *testing.T) {
	r := lease.AcquireRequest{
		Key: "k", Owner: lease.NewOwner(), Note: strings.Repeat("n", lease.MaxStoredNote),
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	r.Note += "n"
	if err := r.Check(); !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), "385 bytes") {
		t.Errorf("got %v", err)
	}
}
