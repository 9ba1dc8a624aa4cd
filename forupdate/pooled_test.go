package forupdate_test

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A transaction is whole also behind a pooler in transaction mode.
func TestALockerWorksBehindPgBouncer(t *testing.T) {
	testdb.PgBouncer.DSN(t) // skips, before there are tables
	pooled := testdb.Kinds[1].Open(t).Behind(t)
	l, err := forupdate.NewLocker(pooled.DB, pooled.Dialect)
	ok(t, err)
	defer l.Close()
	mine, err := pooled.DB.BeginTx(t.Context(), nil)
	ok(t, err)
	defer mine.Rollback()
	ok(t, l.Lock(t.Context(), mine, "b", "a"))
	other, err := pooled.DB.BeginTx(t.Context(), nil)
	ok(t, err)
	defer other.Rollback()
	if err := l.TryLock(t.Context(), other, "a"); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("a locked key: %v", err)
	}
	ok(t, l.TryLock(t.Context(), other, "c"))
	ok(t, mine.Commit())
	ok(t, l.Lock(t.Context(), other, "a"))
}
