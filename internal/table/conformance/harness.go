// Package conformance runs locktest over internal/table, and has the harness that other drivers'
// tests run too. It is a package of its own so that it runs beside the other tests of
// internal/table: each of the two takes minutes.
package conformance

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
)

// unrelated are the topics whose statements are the same for both strategies. A strategy is how one
// key is acquired; these acquire with statements of their own, or want any lease to begin with.
var unrelated = []string{
	"inspect", "renewing fence", "release in a transaction", "raise", "hand over", "acquire all",
	"acquire any", "limit", "hints", "graph", "trace",
}

// without leaves the second strategy's unrelated topics to `make conformance`.
func without(strategy adapter.Strategy) []string {
	if strategy == adapter.Update || testdb.Whole() {
		return nil
	}
	return unrelated
}

// Harness has stores on e's tables, through e.DB. Other is a database that has nothing to do with
// e's, or nil.
func Harness(
	e, other *testdb.Env, strategy adapter.Strategy, sets ...sqlstore.Set,
) locktest.Harness {
	emptied := []string{"rowlock", "rowlock_queue", "rowlock_wait", "rowlock_forced"}
	for _, set := range sets {
		emptied = append(emptied, sqlstore.SetTables[set]...)
	}
	open := func(tb testing.TB) lease.Store {
		tb.Helper()
		s, _, err := table.Open(context.Background(), e.DB, e.Dialect, table.Options{
			Connections: cmp.Or(e.Dialect.Connections(), 3), Strategy: strategy, Hints: true,
			Relax:   strategy == adapter.Update, // the other has the statements that wait
			Timeout: 20 * time.Second,           // the machine is shared
		})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = s.Close() })
		return s
	}
	begin := func(tb testing.TB, e *testdb.Env) locktest.Tx {
		tb.Helper()
		tx, err := e.DB.BeginTx(context.Background(), nil)
		if err != nil {
			tb.Fatal(err)
		}
		return locktest.SQL(tx)
	}
	empty := func(tb testing.TB, _ lease.Store) {
		tb.Helper()
		for _, table := range emptied {
			e.Exec(tb, `DELETE FROM {`+table+`}`)
		}
	}
	h := locktest.Harness{
		Open: func(tb testing.TB) lease.Store {
			empty(tb, nil)
			return open(tb)
		},
		Another: func(tb testing.TB, _ lease.Store) lease.Store { return open(tb) },
		Empty:   testdb.InShort(empty), // each property of a whole run begins with stores of its own
		Expire: func(tb testing.TB, _ lease.Store, key string) {
			e.Exec(tb, `UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ? AND owner IS NOT NULL`, []byte(key))
		},
		SetToken: func(tb testing.TB, _ lease.Store, key string, token lease.Token) { e.SetToken(tb, key, token) },
		ExpireTicket: func(tb testing.TB, _ lease.Store, key string, waiter lease.Owner) {
			e.Exec(tb, `UPDATE {rowlock_queue} SET alive_until = {now} - {second} WHERE {key} = ? AND waiter = ?`, []byte(key), waiter[:])
		},
		AgeTicket: func(tb testing.TB, _ lease.Store, key string, waiter lease.Owner, by time.Duration) {
			rank := map[bool]string{true: "`rank`", false: "rank"}[e.Driver == "mysql"]
			e.Exec(tb, `UPDATE {rowlock_queue} SET `+rank+` = `+rank+` - ? WHERE {key} = ? AND waiter = ?`, by.Microseconds(), []byte(key), waiter[:])
		},
		ExpireMember: func(tb testing.TB, _ lease.Store, key string, owner lease.Owner) {
			e.Exec(tb, `UPDATE {rowlock_member} SET expires_at = {now} - {second} WHERE {key} = ? AND owner = ?`, []byte(key), owner[:])
		},
		AgeIntents: func(tb testing.TB, _ lease.Store, key string, by time.Duration) {
			ms := map[string]string{
				"sqlite": "?", "pgx": "?::bigint * interval '1 millisecond'", "mysql": "INTERVAL ? * 1000 MICROSECOND",
			}[e.Driver]
			e.Exec(tb, `UPDATE {rowlock_member} SET joined_at = joined_at - `+ms+` WHERE {key} = ? AND reader_group = ?`, by.Milliseconds(), []byte(key), make([]byte, 16))
		},
		Begin:    func(tb testing.TB, _ lease.Store) locktest.Tx { return begin(tb, e) },
		SerialTx: e.Name == "sqlite",
		Load:     time.Second,
		Without:  without(strategy),
	}
	if other != nil {
		h.Foreign = func(tb testing.TB) locktest.Tx { return begin(tb, other) }
	}
	return h
}
