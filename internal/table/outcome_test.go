package table_test

import (
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// driver.ErrBadConn says that nothing was sent, and some drivers say it of what was executed.
func TestErrBadConnIsAnUnknownOutcome(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		r.faults.Set(faultdb.OnFunc(func(op faultdb.Op) bool { return op.Prepared }, faultdb.Always(faultdb.LoseReply().Reporting(driver.ErrBadConn))))
		req := lease.AcquireRequest{Key: "key", Owner: lease.NewOwner(), TTL: ttl}
		_, err := ask(t.Context(), r.store, req)
		wantIs(t, err, lease.ErrUnknown, driver.ErrBadConn)
		if row := r.row(t, "key"); row.Owner != req.Owner && row.Owner != (lease.Owner{}) {
			t.Errorf("the row is %+v", row)
		}
	})
}

// What was never sent is sent over another connection, at once, and leaves no doubt.
func TestWhatWasNotSentIsSentOverAnotherConnection(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		for _, kind := range []faultdb.Kind{faultdb.Prepare, faultdb.Connect} {
			r.recycle(t, "inspect")
			inj := faultdb.OnKind(faultdb.Nth(1, faultdb.FailBeforeSend().Reporting(driver.ErrBadConn)), faultdb.Prepare)
			if kind == faultdb.Connect {
				inj = faultdb.Any(inj, faultdb.OnKind(faultdb.Nth(1, faultdb.FailBeforeSend()), faultdb.Connect))
			}
			r.log.Reset()
			r.faults.Set(inj)
			_, a := acquire(t, r.store, kind.String())
			r.faults.Set(nil)
			if !a.Granted || a.Unknown {
				t.Errorf("got %+v", a)
			}
			ops := r.log.Ops()
			if first, last := ops[0], ops[len(ops)-1]; first.Kind != faultdb.Prepare || !last.Executes() || first.Conn == last.Conn {
				t.Errorf("went from %v to %v", first, last)
			}
		}
	})
}

// A connection that has gone silent is given up after the timeout, and the statement sent over
// another.
func TestAStatementThatHangsIsGivenUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		s := r.open(t, r.pool, table.Options{Connections: 1, Timeout: 300 * time.Millisecond})
		silent := faultdb.NewGate()
		defer silent.Release()
		for when, block := range map[string]faultdb.Fault{"before": faultdb.Block(silent), "after": faultdb.BlockAfter(silent)} {
			r.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, block)))
			go func() { <-silent.Arrived() }()
			began := time.Now()
			l, a := acquire(t, s, when)
			if took := time.Since(began); !a.Granted || !a.Unknown || l.Token == 0 || took > patience/4 {
				t.Errorf("held %s it is executed: got %+v after %s", when, a, took)
			}
		}
	})
}

// What a caller who has lost may ask of the server, and what a renewal and a release cost it.
func TestStatementsOfACall(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		l, another := hold(t, r.clean, "key"), hold(t, r.clean, "another")
		renew := func() {
			if _, err := r.store.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}, {Lease: another, TTL: ttl}}); err != nil {
				t.Fatal(err)
			}
		}
		// Each once before it is counted, so that everything is prepared.
		if _, a := acquire(t, r.store, "key"); a.Granted {
			t.Fatal("granted what is held")
		}
		renew()
		r.log.Reset()
		if _, a := acquire(t, r.store, "key"); a.Granted {
			t.Fatal("granted what is held")
		}
		if e.Name == "sqlite" {
			if q := r.log.Queries(); len(q) != 1 || !strings.HasPrefix(q[0], "SELECT") {
				t.Errorf("a loser sent %q, want to look once", q)
			}
		}
		if n := r.log.Count(nil); n > 2 {
			t.Errorf("a loser cost %d round trips", n)
		}
		r.log.Reset()
		renew()
		if n := r.log.Count(nil); n != 1 {
			t.Errorf("a renewal cost %d round trips, want 1: %v", n, r.log.Ops())
		}
		r.log.Reset()
		release(t, r.store, l)
		want := 1
		if e.Name == "sqlite" {
			want = 3 // two pragmas, which send nothing: decision 0058
		}
		if n := r.log.Count(nil); n != want {
			t.Errorf("a release cost %d calls of the driver, want %d", n, want)
		}
	})
}

// What makes a ticket or a member says that an earlier try had no answer: that try may arrive when
// its caller has left, and make it again.
func TestAnEarlierTryWithoutAnswerIsTold(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		r.share(t, "shared")
		for what, call := range map[string]func() (unknown bool, err error){
			"queue-join": func() (bool, error) {
				return r.store.Join(t.Context(), []lease.Ticket{{AcquireRequest: request("k"), Priority: 1}})
			},
			"share-one": func() (bool, error) {
				got, err := r.store.Share(t.Context(), requests("shared"))
				if err == nil && !got[0].Granted {
					t.Errorf("share: %+v", got)
				}
				return err == nil && got[0].Unknown, err
			},
		} {
			for _, lost := range []bool{false, true} {
				if lost {
					r.faults.Set(faultdb.OnMatch("/* rowlock "+what, faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.LoseReply()))))
				}
				unknown, err := call()
				r.faults.Set(nil)
				if err != nil || unknown != lost {
					t.Errorf("%s, a try without answer %t: unknown %t, %v", what, lost, unknown, err)
				}
			}
		}
	})
}
