package optimistic_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A renewal extends a lease that runs, of this owner, token and placement, and the read after it
// finds what has those three, also one that has expired. SQLite renews in one statement.
func TestEachRenewalDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("it renews by the statements of package table")
		}
		had := lease.Lease{Key: "k", Owner: holder, Token: 5}
		list := sqlstore.RenewList([]lease.RenewRequest{{Lease: had, TTL: time.Hour}}, conn.Micros)
		on := session(t, e)
		const past = "expires_at = {now} - {second}"
		for set, want := range map[string]struct{ renewed, found int64 }{
			"note = 'n'": {1, 1}, past: {0, 1}, moved: {0, 0}, raised: {0, 0}, taken: {0, 0},
		} {
			ready(t, e, set)
			if found := looked(t, e, on, list); found != want.found {
				t.Errorf("%s: %d leases are found, want %d", set, found, want.found)
			}
			before := expires(t, e)
			n, err := on.Change(t.Context(), e.Dialect.Text("cas-renew"), list)
			if more := expires(t, e) > before; err != nil || n != want.renewed || more != (want.renewed > 0) {
				t.Errorf("%s: %d rows, %v, want %d; extended: %t", set, n, err, want.renewed, more)
			}
		}
	})
}

func looked(t *testing.T, e *testdb.Env, on *conn.Session, list string) (found int64) {
	t.Helper()
	ok(t, on.Query(t.Context(), e.Dialect.Text("cas-renew-look"), []any{list}, func(row conn.Columns) error {
		found++
		var n, remaining, clock int64
		return row.Scan(&n, &remaining, &clock)
	}))
	return found
}

// expires is when the lease of k ends, as text that grows.
func expires(t *testing.T, e *testdb.Env) (at string) {
	t.Helper()
	ok(t, e.DB.QueryRowContext(t.Context(), e.SQL("SELECT expires_at FROM {rowlock}")).Scan(&at))
	return at
}
