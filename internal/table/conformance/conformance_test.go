package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/schema"
)

// unrelated are the topics whose statements are the same for both strategies. A strategy is how one
// key is acquired; these acquire with statements of their own, or want any lease to begin with.
var unrelated = []string{
	"inspect", "renewing fence", "release in a transaction", "raise", "hand over", "acquire all",
	"acquire any", "limit", "hints", "graph", "trace",
}

// without leaves the second strategy's unrelated topics to `make conformance`.
func without(strategy sqlstore.Strategy) []string {
	if strategy == sqlstore.Update || testdb.Whole() {
		return nil
	}
	return unrelated
}

// The suite that every store must pass, on every database.
func TestConformance(t *testing.T) {
	t.Parallel()
	conforms(t, sqlstore.Update, testdb.Kinds)
}

// The race detector watches them on one database: their Go code is the same on all.
func TestConformanceOfInserts(t *testing.T) {
	t.Parallel()
	kinds := testdb.Kinds
	if race.Enabled && !testdb.Whole() {
		kinds = kinds[1:2]
	}
	conforms(t, sqlstore.Insert, kinds)
}

func conforms(t *testing.T, strategy sqlstore.Strategy, kinds []testdb.Kind) {
	for _, k := range kinds {
		t.Run(fmt.Sprintf("%s/%s", strategy, k.Name), func(t *testing.T) {
			t.Parallel()
			e := k.Open(t)
			e.OnlyReleasesRelax(t)
			other := testdb.Kinds[0].Open(t) // a database that has nothing to do with e's
			locktest.Run(t, harness(e, other, strategy, sqlstore.Shared, sqlstore.Trace))
		})
	}
}

// What needs no other set needs no other table.
func TestConformanceOfCoreAlone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		err := schema.Uninstall(t.Context(), e.DB, e.Dialect)
		if err == nil {
			err = schema.Migrate(t.Context(), e.DB, e.Dialect, schema.Core)
		}
		if err != nil {
			t.Fatal(err)
		}
		h := harness(e, nil, sqlstore.Insert)
		h.ExpireMember, h.AgeIntents = nil, nil // so that no property of another topic shares a key
		h.Without = []string{"shared", "limit", "hand over slots", "trace"}
		if !testdb.Whole() { // TestConformance has these, whose statements know of no other set
			h.Without = append(h.Without, "race", "history", "time", "cancel", "tokens", "keys", "batch", "hints")
		}
		locktest.Run(t, h)
	})
}

// One strategy after the other: transactions of two suites would have all of the pooler's sessions.
func TestConformanceBehindPgBouncer(t *testing.T) {
	t.Parallel()
	for _, strategy := range []sqlstore.Strategy{sqlstore.Update, sqlstore.Insert} {
		t.Run(strategy.String(), func(t *testing.T) {
			testdb.PgBouncer.DSN(t) // skips, before there are tables
			direct := testdb.Kinds[1].Open(t)
			direct.OnlyReleasesRelax(t)
			pooled := direct.Behind(t, postgres.Listen(direct.Source))
			locktest.Run(t, harness(pooled, nil, strategy, sqlstore.Shared, sqlstore.Trace))
		})
	}
}

func TestRandomCalls(t *testing.T) {
	race.Checks(t, 25)
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		e.OnlyReleasesRelax(t)
		h := harness(e, nil, sqlstore.Update, sqlstore.Shared, sqlstore.Trace)
		h.Slow = true
		locktest.RunRandom(t, h, 20)
	})
}

func harness(
	e, other *testdb.Env, strategy sqlstore.Strategy, sets ...sqlstore.Set,
) locktest.Harness {
	emptied := []string{"rowlock", "rowlock_queue", "rowlock_wait", "rowlock_forced"}
	for _, set := range sets {
		emptied = append(emptied, sqlstore.SetTables[set]...)
	}
	open := func(tb testing.TB) lease.Store {
		tb.Helper()
		s, _, err := table.Open(context.Background(), e.DB, e.Dialect, table.Options{
			Connections: cmp.Or(e.Dialect.Connections(), 3), Strategy: strategy, Hints: true,
			Relax:   strategy == sqlstore.Update, // the other has the statements that wait
			Timeout: 20 * time.Second,            // the machine is shared
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
	h := locktest.Harness{
		Open: func(tb testing.TB) lease.Store {
			for _, table := range emptied {
				e.Exec(tb, `DELETE FROM {`+table+`}`)
			}
			return open(tb)
		},
		Another: func(tb testing.TB, _ lease.Store) lease.Store { return open(tb) },
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
			for range int(by / time.Second) {
				e.Exec(tb, `UPDATE {rowlock_member} SET joined_at = joined_at - {second} WHERE {key} = ? AND reader_group = ?`, []byte(key), make([]byte, 16))
			}
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
