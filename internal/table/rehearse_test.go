package table_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// The process may be stopped, or the network fail, in the middle of an opening: the try that was
// not answered has passed the rehearsal's lease on, and the next finds it gone.
func TestAnOpeningWhosePassIsNotAnsweredSucceeds(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		faults := &faultdb.Switch{}
		passes := func(op faultdb.Op) bool {
			return op.Executes() && strings.Contains(op.Query, "/* rowlock pass */")
		}
		counter := faultdb.NewCounter(faultdb.OnFunc(passes, faultdb.Nth(1, faultdb.LoseReply())))
		faults.Set(counter)
		db, err := faultdb.Open(e.Driver, e.Source, faultdb.Any(faults))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s, _, err := table.Open(t.Context(), db, e.Dialect, table.Options{Connections: cmp.Or(e.Dialect.Connections(), 2), Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if counter.Faults() != 1 {
			t.Errorf("%d replies lost", counter.Faults())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The statement of a try that was given up may still have the row locked, and a reaper skips it.
func TestARehearsalReapsItsRowOnceThatIsNoLongerLocked(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		faults, again, reaps := &faultdb.Switch{}, make(chan struct{}), 0
		db, err := faultdb.Open(e.Driver, e.Source, faults)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s := openIn(t, db, e, e.Dialect, false)
		ready(t, e, expired)
		other := begun(t, e)
		n, err := rowsOf(t, other, e.Dialect.Text("dead-lock"), []any{e.Dialect.List([]string{"k"}), 0})
		if err != nil || n != 1 {
			t.Fatalf("%d rows are locked, %v", n, err)
		}
		faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
			if op.Executes() && strings.Contains(op.Query, "/* rowlock dead-lock */") {
				if reaps++; reaps == 2 {
					close(again)
				}
			}
			return faultdb.None
		}))
		ended := make(chan error, 1)
		go func() { ended <- s.RehearseReap(t.Context(), "k") }()
		select {
		case <-again:
			do(t, other, "ROLLBACK")
			wantIs(t, <-ended, nil)
		case err := <-ended:
			t.Errorf("while the row is locked: %v", err)
		}
	})
}

// A statement of the opening that was given up may be carried out when others have used its key
// since: it locks a key that only the opening knows.
func TestAnOpeningOutlivesItsOwnLateStatements(t *testing.T) {
	for _, before := range []string{"acquire", "dead-lock", "reap"} {
		t.Run("before "+before, func(t *testing.T) {
			onServers(t, func(t *testing.T, e *testdb.Env) {
				late, grants := faultdb.NewGate(), 0
				db, err := faultdb.Open(e.Driver, e.Source, faultdb.Func(func(op faultdb.Op) faultdb.Fault {
					if !op.Executes() {
						return faultdb.None
					}
					if strings.Contains(op.Query, "/* rowlock acquire") {
						if grants++; grants == 1 {
							return faultdb.SendLate(late)
						}
					}
					// The second asks for the grant again that the first was for: it has not been used yet.
					if strings.Contains(op.Query, "/* rowlock "+before) && grants != 2 {
						late.Release()
						late.Wait()
					}
					return faultdb.None
				}))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				s, _, err := table.Open(t.Context(), db, e.Dialect, table.Options{Connections: 2, Timeout: 5 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
