package corrupt

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A note of megabytes, which another hand has written, would be read by every listing and every
// waiter.
func TestANoteIsReadNoLongerThanRowlockWritesIt(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver == "mysql" {
			e.Exec(t, `ALTER TABLE {rowlock} MODIFY note LONGBLOB`)
		}
		b := &beside{T: t, env: e, store: storeOn(t, e)}
		b.setup("note = '" + strings.Repeat("x", 3<<20) + "'")
		found, err := b.store.Inspect(t.Context(), lease.Filter{})
		if err != nil || len(found) != healthy+1 {
			t.Fatalf("%d rows, %v", len(found), err)
		}
		for _, r := range found {
			if len(r.Note) > lease.MaxStoredNote {
				t.Errorf("%s: a note of %d bytes", r.Key, len(r.Note))
			}
		}
		for _, a := range b.asks() {
			if len(a.Holder.Note) > lease.MaxStoredNote {
				t.Errorf("a holder's note of %d bytes", len(a.Holder.Note))
			}
		}
	})
}

// asks asks for all keys together, and for the bad one alone.
func (b *beside) asks() []lease.Acquired {
	reqs := b.requests()
	all, err := b.store.Acquire(b.Context(), reqs)
	if err != nil {
		b.Fatal(err)
	}
	one, err := b.store.Acquire(b.Context(), reqs[healthy/2:healthy/2+1])
	if err != nil {
		b.Fatal(err)
	}
	return append(all, one...)
}
