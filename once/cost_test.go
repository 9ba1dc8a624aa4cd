package once_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/once"
)

// What is done once costs one statement more than the transaction that does it, and another if
// there is a result to keep, or a transaction that could have been lost.
func TestStatementsOfACall(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		db, _, log := r.faulty(t)
		o := r.open(t, db, once.Config{Reap: -1})
		nothing := func(context.Context, *sql.Tx) ([]byte, error) { return nil, nil }
		something := func(context.Context, *sql.Tx) ([]byte, error) { return []byte("value"), nil }
		look := 1 // SQLite and MySQL look at a row in a second statement
		if r.Name == "postgres" {
			look = 0
		}
		proof := 0 // InnoDB ends a deadlock's victim and goes on without a transaction
		if r.Driver == "mysql" {
			proof = 1
		}
		for _, call := range []struct {
			what       string
			key        string
			f          once.Func
			statements int
			commits    int
		}{
			{"fresh, no result", "a", nothing, 1 + proof, 1},
			{"fresh, with a result", "b", something, 2, 1},
			{"repeat, no result", "a", never(t), 1 + look, 0},
			{"repeat, with a result", "b", never(t), 1 + look, 0},
		} {
			log.Reset()
			do(t, o, once.Request{Key: call.key}, call.f)
			if n := len(log.Queries()); n != call.statements {
				t.Errorf("%s: %d statements, want %d: %q", call.what, n, call.statements, log.Queries())
			}
			for kind, want := range map[faultdb.Kind]int{faultdb.Begin: 1, faultdb.Commit: call.commits, faultdb.Rollback: 1 - call.commits} {
				if n := log.Count(func(op faultdb.Op) bool { return op.Kind == kind }); n != want {
					t.Errorf("%s: %d × %s, want %d", call.what, n, kind, want)
				}
			}
		}
	})
}

// Those who come while the first is at work cost the database nothing.
func TestRepeatsThatWaitHereAreFree(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		db, _, log := r.faulty(t)
		o := r.open(t, db, eager())
		log.Reset()
		busy := r.inFlight(t, o, once.Request{Key: "key"})
		arrived, all := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(all)
			inParallel(20, func(int) {
				arrived <- struct{}{}
				if res, err := o.Do(t.Context(), once.Request{Key: "key"}, never(t)); err != nil || string(res.Value) != "value" {
					t.Errorf("got %+v, %v", res, err)
				}
			})
		}()
		for range 20 {
			<-arrived
		}
		once.AwaitWaiters(o, "key", 20)
		busy.end()
		<-all
		if n := len(log.Queries()); n != 3 {
			t.Errorf("21 at once cost %d statements, want the 3 of the first", n)
		}
	})
}
