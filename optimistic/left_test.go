package optimistic_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/optimistic"
)

// leaves is what an application may leave on a connection.
func leaves(e *testdb.Env) []string {
	if e.Driver == "mysql" {
		return []string{"BEGIN", "SET autocommit = 0", "SET completion_type = CHAIN"}
	}
	return []string{"BEGIN"}
}

// TestAnUpdateThroughAPoolIsCommitted: an application may have left anything on the session that
// the pool lends, and an update that was told as done must not end with it.
func TestAnUpdateThroughAPoolIsCommitted(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		for _, left := range leaves(e) {
			db := e.Pool(t)
			db.SetMaxOpenConns(1)
			before := get(t, tab, e.DB, 1)
			_, err := db.ExecContext(t.Context(), left)
			ok(t, err)
			row := before
			row.Balance++
			err = tab.Update(t.Context(), db, &row)
			ok(t, db.Close())
			ok(t, err)
			if now := get(t, tab, e.DB, 1); now != row {
				t.Errorf("after %s the table has %+v, and %+v was written", left, now, row)
			}
		}
	})
}

// TestAnUpdateThroughAPoolCommitsNothingElse: what an application has left half done in a
// transaction of its own is not done by an update that meets it.
func TestAnUpdateThroughAPoolCommitsNothingElse(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 2)
		db := e.Pool(t)
		db.SetMaxOpenConns(1)
		row, other := get(t, tab, e.DB, 1), get(t, tab, e.DB, 2)
		conn, err := db.Conn(t.Context())
		ok(t, err)
		for _, half := range []string{"BEGIN", "UPDATE " + own(e, "accounts") + " SET balance = 0 WHERE id = 2"} {
			_, err := conn.ExecContext(t.Context(), half)
			ok(t, err)
		}
		ok(t, conn.Close())
		ok(t, tab.Update(t.Context(), db, &row))
		ok(t, db.Close())
		if now := get(t, tab, e.DB, 2); now != other {
			t.Errorf("another row is %+v, and was %+v", now, other)
		}
	})
}

// TestAConflictThroughAPoolLeavesNoRowLocked: the read of what is in the way locks, and without
// autocommit nothing would end that.
func TestAConflictThroughAPoolLeavesNoRowLocked(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		for _, left := range leaves(e) {
			db := e.Pool(t)
			db.SetMaxOpenConns(1)
			_, err := db.ExecContext(t.Context(), left)
			ok(t, err)
			row := get(t, tab, e.DB, 1)
			stale := row
			stale.Version--
			if err := tab.Update(t.Context(), db, &stale); !errors.Is(err, optimistic.ErrConflict) {
				t.Errorf("after %s: %v, want a conflict", left, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if err := tab.Update(ctx, e.DB, &row); err != nil {
				t.Errorf("after %s and a conflict the row stays locked: %v", left, err)
			}
			cancel()
			ok(t, db.Close())
		}
	})
}
