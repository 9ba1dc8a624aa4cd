package table_test

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// unlearnable are what keeps a new connection from learning its era, each with its cure.
var unlearnable = []struct {
	name  string
	does  func(t *testing.T, e *testdb.Env) (cure func())
	wants error // of a call that would grant; nil: any
}{
	{"a row that was edited", edited, lease.ErrCorrupt},
	{"no table", renamed, lease.ErrNoSchema},
	{"a table that is locked", locked, nil},
}

func edited(t *testing.T, e *testdb.Env) (cure func()) {
	e.Exec(t, `UPDATE {rowlock_era} SET start = ? WHERE history <> ''`, lease.EpochStart(1))
	return func() { e.Exec(t, `UPDATE {rowlock_era} SET start = 0 WHERE history <> ''`) }
}

func renamed(t *testing.T, e *testdb.Env) (cure func()) {
	e.Exec(t, `ALTER TABLE {rowlock_era} RENAME TO `+e.Table("away"))
	return func() { e.Exec(t, `ALTER TABLE `+e.Table("away")+` RENAME TO {rowlock_era}`) }
}

// locked has the era, which must begin, wait for a transaction of another program.
func locked(t *testing.T, e *testdb.Env) (cure func()) {
	if e.Name == "sqlite" {
		return nil // it locks the whole file, and no lease is renewed
	}
	e.ForgetEras(t)
	tx, err := e.DB.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), e.SQL(`UPDATE {rowlock_era} SET since = {now} WHERE history = ''`))
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
				r := newRig(t, e, sqlstore.Update, 1)
				kept, left := hold(t, r.store, "kept "+c.name), hold(t, r.store, "left "+c.name)
				cure := c.does(t, e)
				if cure == nil {
					release(t, r.store, kept)
					release(t, r.store, left)
					return
				}
				r.recycle(t, "")
				for range 2 { // the second on another connection
					r.renews(t, kept)
					if a, err := ask(t.Context(), r.store, requests("new")[0]); err == nil || c.wants != nil && !errors.Is(err, c.wants) {
						t.Errorf("a call that grants: %+v, %v, want %v", a, err, c.wants)
					}
				}
				if a := release(t, r.store, left); a.Gone {
					t.Error("the lease was gone")
				}
				cure()
				r.renews(t, kept)
				r.recycle(t, "") // or a call that comes at once meets the refusal from before
				release(t, r.store, hold(t, r.store, "new"))
				release(t, r.store, kept)
			})
		}
	})
}

func (r *rig) renews(t *testing.T, l lease.Lease) {
	t.Helper()
	got, err := r.store.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
	if err != nil || got[0].Outcome != lease.Extended {
		t.Errorf("the renewal was answered %+v, %v", got, err)
	}
}
