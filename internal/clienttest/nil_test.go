package clienttest

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
)

// noContext is nil, as a caller passes it by mistake.
var noContext context.Context

// refusedInWords fails the test unless each error is ErrConfig and says what is nil.
func refusedInWords(t *testing.T, errs map[string]error) {
	t.Helper()
	for name, err := range errs {
		WantIs(t, name, err, rowlock.ErrConfig)
		if err != nil && !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: %q does not say what is nil", name, err)
		}
	}
}

func TestANilContextIsRefused(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		errs := make(map[string]error)
		_, errs["Lock"] = c.Lock(noContext, "k")
		_, errs["TryLock"] = c.TryLock(noContext, "k")
		_, errs["LockAll"] = c.LockAll(noContext, []string{"k", "l"})
		_, errs["TryLockAll"] = c.TryLockAll(noContext, []string{"k", "l"})
		errs["Do"] = c.Do(noContext, "k", func(context.Context, *rowlock.Lock) error {
			t.Error("called")
			return nil
		})
		l := Take(t, c, "k")
		errs["FenceIn"] = l.FenceIn(noContext, lease.InTx(new(sql.Tx)))
		errs["UnlockIn"] = l.UnlockIn(noContext, lease.InTx(new(sql.Tx)))
		WantAlive(t, l)
		refusedInWords(t, errs)
	})
}

// Unlock is deferred, and its error is ignored: a lock that it left behind would be renewed for
// ever.
func TestUnlockWithANilContextReleases(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		errs := map[string]error{"Unlock": Take(t, c, "k").Unlock(noContext)}
		all, err := c.LockAll(t.Context(), []string{"l", "m"})
		if err != nil {
			t.Fatal(err)
		}
		errs["Unlock of all"] = all.Unlock(noContext)
		refusedInWords(t, errs)
		for _, key := range []string{"k", "l", "m"} {
			if IsHeld(t, s, key) {
				t.Errorf("%q is still held", key)
			}
		}
	})
}

func TestNilFunctionsAndOptionsAreRefused(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		errs := map[string]error{"Do": c.Do(t.Context(), "k", nil)}
		_, errs["OnWait"] = c.Lock(t.Context(), "k", rowlock.OnWait(nil))
		_, errs["option"] = c.Lock(t.Context(), "k", nil)
		refusedInWords(t, errs)
		if IsHeld(t, s, "k") {
			t.Error("k was locked")
		}
	})
}

func TestOtherPackagesRefuseNil(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	d, errs := e.Dialect, make(map[string]error)
	_, errs["OpenContext"] = rowlock.OpenContext(noContext, e.DB, d, nil)
	_, errs["OpenTableContext"] = rowlock.OpenTableContext(noContext, e.DB, d, nil)
	_, errs["forupdate.NewLockerContext"] = forupdate.NewLockerContext(noContext, e.DB, d)
	_, errs["optimistic.NewContext"] = optimistic.NewContext(noContext, e.DB, d)
	_, errs["once.NewContext"] = once.NewContext(noContext, e.DB, d, nil)
	_, errs["dialect option"] = rowlock.Open(e.DB, sqlite.New(dialect.Prefix("p_"), nil), nil)
	_, errs["forupdate option"] = forupdate.NewLocker(e.DB, d, nil)
	_, errs["optimistic option"] = optimistic.New(e.DB, d, nil)
	none := func(context.Context) error { t.Error("called"); return nil }
	errs["Retry"] = optimistic.Retry(noContext, none)
	errs["Retry's option"] = optimistic.Retry(t.Context(), none, nil)

	rows, err := optimistic.NewTable[struct{ ID, Version int }](d, "x")
	if err != nil {
		t.Fatal(err)
	}
	_, errs["Get"] = rows.Get(noContext, e.DB, 1)
	errs["Update"] = rows.Update(noContext, e.DB, &struct{ ID, Version int }{})

	o, err := once.New(e.DB, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	work := func(context.Context, *sql.Tx) ([]byte, error) { t.Error("called"); return nil, nil }
	_, errs["once.Do"] = o.Do(noContext, once.Request{Key: "k"}, work)
	_, errs["once.Do's function"] = o.Do(t.Context(), once.Request{Key: "k"}, nil)
	_, errs["once.In"] = o.In(noContext, new(sql.Tx), once.Request{Key: "k"}, work)
	_, errs["once.Sweep"] = o.Sweep(noContext, 0)

	l, err := forupdate.NewLocker(e.DB, d)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	errs["Locker.Lock"] = l.Lock(noContext, new(sql.Tx), "k")
	errs["Locker.TryLock"] = l.TryLock(noContext, new(sql.Tx), "k")
	errs["Locker.LockRows"] = l.LockRows(noContext, new(sql.Tx), forupdate.Rows{Table: "x", Key: "id"}, 1)
	errs["Locker.Pick"] = l.Pick(noContext, new(sql.Tx), nil, forupdate.Queue{})
	_, errs["Locker.Sweep"] = l.Sweep(noContext, lease.SweepOptions{})
	c, err := rowlock.Open(e.DB, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	errs["Unlock"] = Take(t, c, "k").Unlock(noContext)
	if _, err := c.TryLock(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	refusedInWords(t, errs)
}
