package conformance_test

import (
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table/conformance"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/schema"
)

// The suite that every store must pass, on every database.
func TestConformance(t *testing.T) {
	t.Parallel()
	conforms(t, adapter.Update, testdb.Kinds)
}

// The race detector watches them on one database: their Go code is the same on all.
func TestConformanceOfInserts(t *testing.T) {
	t.Parallel()
	kinds := testdb.Drawn(t, testdb.Kinds)
	if race.Enabled && !testdb.Whole() {
		kinds = kinds[1:2]
	}
	conforms(t, adapter.Insert, kinds)
}

func conforms(t *testing.T, strategy adapter.Strategy, kinds []testdb.Kind) {
	for _, k := range kinds {
		t.Run(fmt.Sprintf("%s/%s", strategy, k.Name), func(t *testing.T) {
			t.Parallel()
			e := k.Open(t)
			e.OnlyReleasesRelax(t)
			other := testdb.Kinds[0].Open(t) // a database that has nothing to do with e's
			locktest.Run(t, conformance.Harness(e, other, strategy, sqlstore.Shared, sqlstore.Trace))
		})
	}
}

// What needs no other set needs no other table. Its Go code is that of TestConformance.
func TestConformanceOfCoreAlone(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		err := schema.Uninstall(t.Context(), e.DB, e.Dialect)
		if err == nil {
			err = schema.Migrate(t.Context(), e.DB, e.Dialect, schema.Core)
		}
		if err != nil {
			t.Fatal(err)
		}
		h := conformance.Harness(e, nil, adapter.Insert)
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
	for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
		if race.Enabled != (strategy == adapter.Update) && !testdb.Whole() {
			continue // one is for the race detector; the statements of the other are run without
		}
		t.Run(strategy.String(), func(t *testing.T) {
			testdb.PgBouncer.DSN(t) // skips, before there are tables
			direct := testdb.Kinds[1].Open(t)
			direct.OnlyReleasesRelax(t)
			pooled := direct.Behind(t, postgres.Listen(direct.Source))
			locktest.Run(t, conformance.Harness(pooled, nil, strategy, sqlstore.Shared, sqlstore.Trace))
		})
	}
}

func TestRandomCalls(t *testing.T) {
	race.Checks(t, 25)
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		e.OnlyReleasesRelax(t)
		h := conformance.Harness(e, nil, adapter.Update, sqlstore.Shared, sqlstore.Trace)
		h.Slow = true
		locktest.RunRandom(t, h, 20)
	})
}
