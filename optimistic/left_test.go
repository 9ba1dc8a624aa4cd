package optimistic_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// TestAnUpdateThroughAPoolIsCommitted: an application may have left anything on the session that
// the pool lends, and an update that was told as done must not end with it. (A transaction that is
// left open on SQLite has the file's write lock: no other write gets anywhere.)
func TestAnUpdateThroughAPoolIsCommitted(t *testing.T) {
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		tab := accounts(t, e, 1)
		leaves := []string{"BEGIN"}
		if e.Driver == "mysql" {
			leaves = append(leaves, "SET autocommit = 0")
		}
		for _, left := range leaves {
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
