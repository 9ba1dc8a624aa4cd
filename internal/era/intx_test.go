package era

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// A transaction of the application's grants in the newest era that a session has learned, while no
// session knows a later one, every bridge has admitted it, and none has strayed from its server.
func TestWhenATransactionMayGrant(t *testing.T) {
	d := new(sqlstore.Dialect)
	d.EraInTx = func(h sqlstore.History) string { return h.Name }
	e := New(d, nil)
	learn := func(start lease.Token, name string) {
		e.see(start)
		e.learned.Store(&sqlstore.History{Name: name, Newest: start})
	}
	want := func(when string, start lease.Token, text string) {
		t.Helper()
		if got, in := e.InTx(); got != start || in != text {
			t.Errorf("%s: era %d, %q; want %d, %q", when, got, in, start, text)
		}
	}
	want("before any session has learned", unlearned, "")
	learn(5, "first")
	want("learned", 5, "first")
	e.see(9)
	want("another session knows a later one", unlearned, "")
	admit, free := e.Hold()
	learn(20, "second")
	want("a bridge has not admitted it", unlearned, "")
	admit(20)
	want("admitted", 20, "second")
	free()
	e.Strayed()
	want("strayed", unlearned, "")
	learn(20, "second")
	want("learned anew", 20, "second")
	e.d = new(sqlstore.Dialect)
	want("a database whose transactions cannot", unlearned, "")
}
