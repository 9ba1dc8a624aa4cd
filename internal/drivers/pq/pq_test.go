package pq_test

import (
	"database/sql"
	"testing"

	"github.com/lib/pq"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table/conformance"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/locktest"
)

// through returns e with a pool that goes through lib/pq.
func through(t *testing.T, e *testdb.Env) *testdb.Env {
	t.Helper()
	connector, err := pq.NewConnector(e.Source)
	if err != nil {
		t.Fatal(err)
	}
	other := *e
	other.DB = sql.OpenDB(connector)
	t.Cleanup(func() { _ = other.DB.Close() })
	return &other
}

// The suite that every store must pass, through a driver that has nothing of pgx's.
func TestConformanceThroughLibPq(t *testing.T) {
	strategies := []adapter.Strategy{adapter.Update}
	if testdb.Whole() {
		strategies = append(strategies, adapter.Insert)
	}
	for _, strategy := range strategies {
		t.Run(strategy.String(), func(t *testing.T) {
			t.Parallel()
			e := testdb.Kinds[1].Open(t)
			e.OnlyReleasesRelax(t)
			other := testdb.Kinds[0].Open(t) // a database that has nothing to do with e's
			locktest.Run(t, conformance.Harness(through(t, e), other, strategy, sqlstore.Shared, sqlstore.Trace))
		})
	}
}
