package shedlock_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// MariaDB before 11.6 and MySQL before 8 make tables of latin1, and tables of utf8 are without the
// characters of four bytes.
func TestANoteThatTheColumnCannotHoldRefusesNoLock(t *testing.T) {
	for _, c := range []struct{ charset, note, want string }{
		{"ascii", "für 🚀", "f?r ?"},
		{"latin1", "für → 🚀", "für ? ?"},
		{"utf8mb3", "für → 🚀", "für → ?"},
		{"utf8mb4", "für → 🚀", "für → 🚀"},
		{"koi8r", "für", "f?r"},
	} {
		for _, k := range testdb.Servers[1:] {
			t.Run(k.Name+" "+c.charset, func(t *testing.T) {
				t.Parallel()
				e := k.Open(t)
				name := table(t, e, strings.Replace(columns(e), "VARCHAR(255)", "VARCHAR(255) CHARACTER SET "+c.charset, 1))
				s, holder := open(t, e, name), lease.NewOwner()
				for range 2 { // it inserts the row, and then takes it
					list, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: holder, TTL: ttl, Note: "web-1/7/x\t" + c.note}})
					if err != nil || !list[0].Granted {
						t.Fatalf("with the note %q: %+v, %v", c.note, list, err)
					}
				}
				if a := acquire(t, s, "k", lease.NewOwner()); a.Granted || a.Holder.Note != "web-1/7/x\t"+c.want {
					t.Errorf("%+v, want it held with the note %q", a, c.want)
				}
				if release(t, s, "k", holder).Gone {
					t.Error("the holder's release has found nothing")
				}
			})
		}
	}
}
