package forupdate_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// The server is not told that the client is gone. It ends the session that keeps silent, so the key
// is free when the TTL is over.
func TestAConnectionThatVanishesWithoutAWordLetsItsKeyGoWithinTheTTL(t *testing.T) {
	const d = 4 * time.Second // a shorter one is over when a process gets no turn
	onServers(t, func(t *testing.T, e *testdb.Env) {
		h, source := e.Holed(t)
		db, err := sql.Open(e.Driver, source)
		ok(t, err)
		defer db.Close()
		gone, err := forupdate.New(db, e.Dialect, forupdate.Look(time.Hour))
		ok(t, err)
		s := open(t, e.DB, e)
		l := holdFor(t, gone, "k", d)
		renewed := time.Now()
		if got := renew(t, gone, l, d); got != lease.Extended {
			t.Fatal(got)
		}
		h.Vanish()
		began := time.Now()
		var a lease.Acquired
		eventually(t, "the key to come free", func() bool { a = ask(t, s, "k"); return a.Granted })
		if took := time.Since(began); time.Since(renewed) < d-100*time.Millisecond || took > d+time.Second+soon {
			t.Errorf("free after %s, the TTL is %s", took, d)
		} else {
			t.Logf("free after %s", took)
		}
		if a.Token <= l.Token {
			t.Errorf("token %d came after token %d", a.Token, l.Token)
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		answers, err := gone.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: d}})
		if err == nil && answers[0].Outcome != lease.Lost {
			t.Errorf("the renewal of one who has vanished: %+v", answers)
		}
		if took := time.Since(began); took > d+soon {
			t.Errorf("the renewal of one who has vanished took %s", took)
		}
		_ = gone.Close()
	})
}
