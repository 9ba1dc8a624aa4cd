package optimistic_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// updates cuts executions of UPDATE.
func updates(f faultdb.Fault) faultdb.Injector { return faultdb.OnMatch("UPDATE", faultdb.Nth(1, f)) }

// A driver that calls the connection bad when only the reply was lost has database/sql send the
// update again. The second must not take the first for another client's change, or Retry would do
// the work twice.
func TestAnUpdateWhoseReplyWasLostIsDoneOnceAndIsNoConflict(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 2)
		for id, fault := range map[int64]faultdb.Fault{1: faultdb.LoseReply(), 2: faultdb.LoseReply().Reporting(driver.ErrBadConn)} {
			db, err := faultdb.Open(e.Driver, e.Source, updates(fault))
			ok(t, err)
			err = optimistic.Retry(t.Context(), func(ctx context.Context) error {
				a := get(t, tab, e.DB, id)
				a.Balance++
				err := tab.Update(ctx, db, &a)
				if a.Version != 1 {
					t.Errorf("the row has version %d after %v", a.Version, err)
				}
				return err
			})
			wantIs(t, err, lease.ErrUnknown)
			if errors.Is(err, optimistic.ErrConflict) {
				t.Errorf("it is called a conflict too: %v", err)
			}
			if a := get(t, tab, e.DB, id); a.Balance != 101 || a.Version != 2 {
				t.Errorf("%+v after one update", a)
			}
			ok(t, db.Close())
		}
	})
}

// wrapped is a pool, a transaction or a connection in a wrapper with no more than what an Ext
// needs.
type wrapped struct{ optimistic.Ext }

type (
	wrappedTx   struct{ *sql.Tx }
	wrappedPool struct{ *sql.DB }
)

// Through a pool that hides what it is, database/sql sends the update twice, and no one can tell
// the second from a conflict.
func TestAnUpdateThatMayBeSentTwiceIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		db, err := faultdb.Open(e.Driver, e.Source, updates(faultdb.LoseReply().Reporting(driver.ErrBadConn)))
		ok(t, err)
		defer db.Close()
		err = optimistic.Retry(t.Context(), func(ctx context.Context) error {
			a := get(t, tab, wrapped{db}, 1) // reads may be sent again
			a.Balance += 10
			return tab.Update(ctx, wrapped{db}, &a)
		})
		wantIs(t, err, lease.ErrConfig)
		if a := get(t, tab, e.DB, 1); a.Balance != 100 || a.Version != 1 {
			t.Errorf("%+v after an update that was refused", a)
		}
		tx := beginAt(t, e.DB, sql.LevelDefault)
		for _, ext := range []optimistic.Ext{wrappedTx{tx}, wrappedPool{e.DB}} {
			a := get(t, tab, ext, 1)
			ok(t, tab.Update(t.Context(), ext, &a))
			_ = tx.Rollback()
		}
	})
}

// Without a reply a transaction is over, and nothing of it was done.
func TestALostReplyInATransactionIsNotUnknown(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		db, err := faultdb.Open(e.Driver, e.Source, updates(faultdb.LoseReply()))
		ok(t, err)
		defer db.Close()
		a := get(t, tab, e.DB, 1)
		tx := beginAt(t, db, sql.LevelDefault)
		if err := tab.Update(t.Context(), tx, &a); err == nil || errors.Is(err, lease.ErrUnknown) {
			t.Errorf("got %v", err)
		}
		_ = tx.Rollback()
		if now := get(t, tab, e.DB, 1); now != a || a.Version != 1 {
			t.Errorf("the table has %+v, and the row is %+v", now, a)
		}
	})
}

// A pool whose idle connections have all been closed by the server, as after a restart, is no
// reason to fail.
func TestAnUpdateFindsAConnectionThatStillWorks(t *testing.T) {
	const idle = 5
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		var seen atomic.Int32
		stale := faultdb.OnMatch("UPDATE", faultdb.Func(func(faultdb.Op) faultdb.Fault {
			if seen.Add(1) > idle {
				return faultdb.Fault{}
			}
			return faultdb.FailBeforeSend().Reporting(driver.ErrBadConn)
		}))
		db, err := faultdb.Open(e.Driver, e.Source, stale)
		ok(t, err)
		defer db.Close()
		db.SetMaxIdleConns(idle)
		var conns [idle]*sql.Conn
		for i := range conns {
			conns[i], err = db.Conn(t.Context())
			ok(t, err)
		}
		for _, c := range conns {
			ok(t, c.Close())
		}
		a := get(t, tab, e.DB, 1)
		ok(t, tab.Update(t.Context(), db, &a))
		if now := get(t, tab, e.DB, 1); now.Version != 2 || seen.Load() != idle+1 {
			t.Errorf("after %d tries the row is %+v", seen.Load(), now)
		}
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%d connections were not given back", n)
		}
	})
}

// The server may go on with what its client has given up: that is unknown. What was never sent is
// not.
func TestAContextThatEndsInAnUpdateLeavesItUnknown(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		db := e.Pool(t)
		a, theirs := get(t, tab, db, 1), get(t, tab, db, 1) // db has a connection now
		tx := beginAt(t, e.DB, sql.LevelDefault)
		ok(t, tab.Update(t.Context(), tx, &theirs)) // and holds the row
		// Long enough for the statement to be sent on a busy machine.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		wantIs(t, tab.Update(ctx, db, &a), lease.ErrUnknown, context.DeadlineExceeded)
		ok(t, tx.Rollback())

		err := tab.Update(ctx, e.DB, &a)
		wantIs(t, err, context.DeadlineExceeded)
		if errors.Is(err, lease.ErrUnknown) {
			t.Errorf("nothing was sent, and it is unknown: %v", err)
		}
		one := e.Pool(t)
		one.SetMaxOpenConns(1)
		conn, err := one.Conn(t.Context())
		ok(t, err)
		defer conn.Close()
		ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err = tab.Update(ctx, one, &a)
		wantIs(t, err, context.DeadlineExceeded)
		if errors.Is(err, lease.ErrUnknown) || a.Version != 1 {
			t.Errorf("no connection was to be had, and it is %v; the row is %+v", err, a)
		}
	})
}

// What a trigger of the user's refuses was undone, and not lost.
func TestARefusalOfTheUsersOwnIsNotUnknown(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		beforeUpdate(t, e, map[string]string{
			"pgx":    `RAISE EXCEPTION ''not today'';`,
			"sqlite": `BEGIN SELECT RAISE(ABORT, 'not today'); END`,
			"mysql":  `SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today'`,
		})
		a := get(t, tab, e.DB, 1)
		err := tab.Update(t.Context(), e.DB, &a)
		wantSays(t, err, "not today")
		for _, not := range []error{lease.ErrUnknown, optimistic.ErrConflict, lease.ErrBusy, optimistic.ErrMiscount} {
			if errors.Is(err, not) {
				t.Errorf("%v is %v", err, not)
			}
		}
	})
}

// explosive is a value of the user's own that panics when it is to be written.
type explosive struct{}

func (explosive) Value() (driver.Value, error) { panic("boom") }

// Scan takes anything.
func (*explosive) Scan(any) error { return nil }

func TestAPanicInAValueLosesNoConnection(t *testing.T) {
	type row struct {
		ID, Version int64
		Name        explosive
	}
	e := testdb.Kinds[0].Open(t)
	accounts(t, e, 1)
	tab := tableOf[row](t, e, own(e, "accounts"))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing panicked: the test proves nothing")
			}
		}()
		_ = tab.Update(t.Context(), e.DB, &row{ID: 1, Version: 1})
	}()
	if n := e.DB.Stats().InUse; n != 0 {
		t.Errorf("%d connections were not given back", n)
	}
}

// A statement that was not even sent, or does not fit the table, has certainly not been done.
func TestWhatCannotBeWrittenIsNotUnknown(t *testing.T) {
	type odd struct {
		ID, Version int64
		Balance     chan int
	}
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		accounts(t, e, 1)
		name, view := own(e, "accounts"), own(e, "sums")
		e.Exec(t, `CREATE VIEW `+view+` AS SELECT id, max(version) AS version, max(name) AS name, max(balance) AS balance FROM `+name+` GROUP BY id`)
		t.Cleanup(func() { e.Exec(t, `DROP VIEW `+view) })
		for what, err := range map[string]error{
			"a channel": tableOf[odd](t, e, name).Update(t.Context(), e.DB, &odd{ID: 1, Version: 1, Balance: make(chan int)}),
			"a view":    tableOf[account](t, e, view).Update(t.Context(), e.DB, &account{ID: 1, Version: 1}),
		} {
			if err == nil || errors.Is(err, lease.ErrUnknown) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
