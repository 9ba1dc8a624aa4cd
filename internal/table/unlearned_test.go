package table_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// unlearnable are what keeps a new connection from learning its era, each with its cure.
var unlearnable = []struct {
	name  string
	does  func(t *testing.T, e *testdb.Env) (cure func())
	wants error // of a call that would grant
}{
	{"a row that was edited", edited, lease.ErrCorrupt},
	{"an era that is ahead of this machine's clock", inTheFuture, lease.ErrCorrupt},
	{"no table", renamed, lease.ErrNoSchema},
	{"a table that is locked", locked, lease.ErrBusy},
}

func edited(t *testing.T, e *testdb.Env) (cure func()) {
	e.Exec(t, `UPDATE {rowlock_meta} SET start = ? WHERE name LIKE 'era/%'`, lease.EpochStart(1))
	return func() { e.Exec(t, `UPDATE {rowlock_meta} SET start = 0 WHERE name LIKE 'era/%'`) }
}

func inTheFuture(t *testing.T, e *testdb.Env) (cure func()) {
	e.Exec(t, `UPDATE {rowlock_meta} SET start = ? WHERE name LIKE 'era/%'`, era.Start(time.Now().Add(25*time.Hour)))
	return func() { e.Exec(t, `DELETE FROM {rowlock_meta} WHERE name LIKE 'era/%'`) }
}

func renamed(t *testing.T, e *testdb.Env) (cure func()) {
	e.Exec(t, `ALTER TABLE {rowlock_meta} RENAME TO `+e.Table("away"))
	return func() { e.Exec(t, `ALTER TABLE `+e.Table("away")+` RENAME TO {rowlock_meta}`) }
}

// locked has the era, which must begin, wait for a transaction of another program.
func locked(t *testing.T, e *testdb.Env) (cure func()) {
	if e.Name == "sqlite" {
		return nil // it locks the whole file, and no lease is renewed
	}
	e.ForgetEras(t)
	tx, err := e.DB.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), e.SQL(`UPDATE {rowlock_meta} SET since = {now} WHERE name = 'eras'`))
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// Renewals and releases need no era. On a connection that can learn none they go on, and only what
// grants fails, with the cause, until that is gone.
func TestRenewalsGoOnThoughNoEraCanBeLearned(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, c := range unlearnable {
			t.Run(c.name, func(t *testing.T) {
				r := newRig(t, e, adapter.Update, 1)
				kept, left := hold(t, r.store, "kept "+c.name), hold(t, r.store, "left "+c.name)
				release(t, r.store, hold(t, r.store, "free")) // its row is there
				cure := c.does(t, e)
				if cure == nil {
					release(t, r.store, kept)
					release(t, r.store, left)
					return
				}
				r.recycle(t, "")
				for range 2 { // the second on another connection
					r.renews(t, kept)
					for _, key := range []string{"free", "new"} {
						if a, err := ask(t.Context(), r.store, requests(key)[0]); !errors.Is(err, c.wants) {
							t.Errorf("a call that grants %q: %+v, %v, want %v", key, a, err, c.wants)
						}
					}
				}
				if a := release(t, r.store, left); a.Gone {
					t.Error("the lease was gone")
				}
				cure()
				r.renews(t, kept)
				release(t, r.store, r.soon(t, "free"))
				release(t, r.store, kept)
			})
		}
	})
}

// A holder with a waiter behind it gives its key up all the same: what would grant the key to the
// waiter leaves it to a release.
func TestALeaseThatCannotBePassedOnIsReleased(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		handed, passed := hold(t, r.store, "handed"), hold(t, r.store, "passed")
		_, err := r.store.Join(t.Context(), []lease.Ticket{{AcquireRequest: request("passed"), Priority: 5}})
		wantIs(t, err, nil)
		edited(t, e)
		r.recycle(t, "")
		got, err := r.store.HandOver(t.Context(), []lease.HandOver{{From: handed, To: request("handed")}})
		if err != nil || got[0].Granted || got[0].Unknown {
			t.Errorf("the hand-over was answered %+v, %v", got, err)
		}
		if a := release(t, r.store, handed); a.Gone {
			t.Error("the lease was gone")
		}
		p, err := r.store.Pass(t.Context(), []lease.Lease{passed})
		if err != nil || p[0].Gone || !p[0].To.IsZero() {
			t.Errorf("the pass was answered %+v, %v", p, err)
		}
		if owner := r.row(t, "passed").Owner; !owner.IsZero() {
			t.Errorf("the key is %s's", owner)
		}
	})
}

// The connection is discarded by a call that grants, and not by releases that came in one batch
// with each other: where other pinned connections go on granting, each batch would make a
// connection.
func TestReleasesInABatchKeepAConnectionThatLearnedNoEra(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		held := []lease.Lease{hold(t, r.store, "a"), hold(t, r.store, "b"), hold(t, r.store, "c")}
		edited(t, e)
		asked := time.Now()
		r.recycle(t, "")
		r.log.Reset()
		got, err := r.store.Release(t.Context(), held)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range got {
			if a.Err != nil || a.Gone {
				t.Errorf("a release was answered %+v", a)
			}
		}
		if n := r.dials(); n != 0 && time.Since(asked) < time.Second { // it asks anew after that
			t.Errorf("the releases have made %d connections", n)
		}
	})
}

// An audit reads nothing on a connection that has learned no era, and says why.
func TestAnAuditIsToldWhyNoEraWasLearned(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		edited(t, e)
		r.recycle(t, "")
		r.log.Reset()
		if _, err := r.store.Inspect(adapter.ReadNewest(t.Context()), lease.Filter{Keys: []string{"k"}}); !errors.Is(err, lease.ErrCorrupt) {
			t.Errorf("got %v, want %v", err, lease.ErrCorrupt)
		}
		if n := r.dials(); n > 1 { // one, if it was slow to come
			t.Errorf("the audit has made %d connections, which learn no era either", n)
		}
	})
}

// dials is how many connections the store has made since the log was reset.
func (r *rig) dials() (n int) {
	for _, op := range r.log.Ops() {
		if op.Kind == faultdb.Connect {
			n++
		}
	}
	return n
}

// soon holds a key that is free. The first call may meet the refusal from before, and no later one.
func (r *rig) soon(t *testing.T, key string) lease.Lease {
	t.Helper()
	req := requests(key)[0]
	a, err := ask(t.Context(), r.store, req)
	if err != nil {
		a, err = ask(t.Context(), r.store, req)
	}
	if err != nil || !a.Granted {
		t.Fatalf("%q was not granted: %+v, %v", key, a, err)
	}
	return lease.Lease{Key: key, Owner: req.Owner, Token: a.Token}
}

func (r *rig) renews(t *testing.T, l lease.Lease) {
	t.Helper()
	got, err := r.store.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
	if err != nil || got[0].Outcome != lease.Extended {
		t.Errorf("the renewal was answered %+v, %v", got, err)
	}
}

// A pass on a session that has learned no era frees the key, as under load, when others begin the
// era for longer than a row may be waited for. That is no reason to refuse the database.
func TestAnOpeningPassesOnASessionWithoutAnEra(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		held := hold(t, r.store, "k")
		next := lease.Ticket{AcquireRequest: request("k"), Priority: 1}
		_, err := r.store.Join(t.Context(), []lease.Ticket{next})
		wantIs(t, err, nil)
		cure := sync.OnceFunc(locked(t, e))
		defer cure()
		r.recycle(t, "")
		r.renews(t, held)
		r.faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
			if op.Executes() && strings.Contains(op.Query, "/* rowlock release") {
				cure()
			}
			return faultdb.None
		}))
		if token, err := r.store.RehearsePass(t.Context(), held, next); err != nil || token <= held.Token {
			t.Errorf("token %d after %d, %v", token, held.Token, err)
		}
	})
}

// A session may have waited for another one that begins the era, for as long as it may wait for a
// row. It looks again: what it has waited for is there.
func TestASessionLooksAgainForTheEraThatItHasWaitedFor(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		release(t, r.store, hold(t, r.store, "k"))
		cure, cut, waits := sync.OnceFunc(locked(t, e)), false, 0
		defer cure()
		r.faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
			switch {
			case op.Executes() && !cut: // so that a session is made
				cut = true
				return faultdb.FailBeforeSend()
			case op.Executes() && strings.Contains(op.Query, "/* rowlock era-make */"):
				if waits++; waits == 2 {
					cure()
				}
			}
			return faultdb.None
		}))
		release(t, r.store, hold(t, r.store, "k"))
		if waits != 2 {
			t.Errorf("%d waits for the era", waits)
		}
	})
}
