package table_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// without removes sets of tables.
func without(t *testing.T, e *testdb.Env, sets ...sqlstore.Set) {
	t.Helper()
	for _, set := range sets {
		for _, name := range sqlstore.SetTables[set] {
			e.Exec(t, "DROP TABLE {"+name+"}")
		}
		e.Exec(t, fmt.Sprintf("DELETE FROM {rowlock_meta} WHERE name IN ('schema_version/%s', 'compatible_from/%[1]s')", set))
	}
}

func openTable(t *testing.T, e *testdb.Env) *table.Store {
	t.Helper()
	s, _, err := table.Open(t.Context(), e.DB, e.Dialect, table.Options{Connections: cmp.Or(e.Dialect.Connections(), 2), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// What a lock needs, what lists and removes its rows, and what an operator needs in an emergency
// use the tables of Core. A call that needs another set names it, and how to make it.
func TestCoreAlone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		without(t, e, sqlstore.AllSets[1:]...)
		s := openTable(t, e)
		ctx := t.Context()
		held := lease.AcquireRequest{Key: "held", Owner: lease.NewOwner(), TTL: time.Minute}
		if a, err := s.Acquire(ctx, []lease.AcquireRequest{held}); err != nil || !a[0].Granted {
			t.Fatalf("acquire: %+v, %v", a, err)
		}
		rows, err := s.Inspect(ctx, lease.Filter{Held: true})
		if err != nil || len(rows) != 1 || rows[0].Key != "held" {
			t.Errorf("inspect: %+v, %v", rows, err)
		}
		if _, err := s.Evict(ctx, "held", time.Second); err != nil && !errors.Is(err, lease.ErrUnsupported) {
			t.Errorf("evict: %v", err)
		}
		if _, err := s.ForceRelease(ctx, lease.ForceRequest{
			ID: lease.NewOwner(), Key: "held", By: "ada", Reason: "test",
		}); err != nil {
			t.Errorf("force release: %v", err)
		}
		if n, err := s.Sweep(ctx, lease.SweepOptions{}); err != nil || n != 1 {
			t.Errorf("sweep: %d rows, %v", n, err)
		}
		for set, calls := range map[sqlstore.Set][]error{
			sqlstore.Shared: callsOfShared(ctx, s),
			sqlstore.Trace: {
				s.WriteTrace(ctx, nil),
				second(s.ReadTrace(ctx, lease.TraceFilter{})),
				second(s.SweepTrace(ctx, lease.SweepOptions{})),
			},
		} {
			for i, err := range calls {
				if !errors.Is(err, lease.ErrNoSchema) || !strings.Contains(err.Error(), "--set "+string(set)) {
					t.Errorf("call %d of the set %s: %v", i, set, err)
				}
			}
		}
	})
}

func callsOfShared(ctx context.Context, s *table.Store) []error {
	limit := lease.Limit{Name: "limit", Slots: 2}
	r := lease.AcquireRequest{Key: limit.Slot(0), Owner: lease.NewOwner(), TTL: time.Minute}
	return []error{
		second(s.Share(ctx, []lease.AcquireRequest{r})),
		s.Intend(ctx, lease.NewOwner(), []string{"k"}, time.Second),
		second(s.MakeLimit(ctx, limit)),
		s.Resize(ctx, limit),
		second(s.AcquireWithin(ctx, limit, []lease.AcquireRequest{r}, 1)),
	}
}

func second[T any](_ T, err error) error { return err }

// A set that this version does not know is refused where it would be used: Shared by every client,
// because it could not end what readers have left.
func TestASetOfANewerVersionIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		newer := func(set sqlstore.Set, version int) {
			e.Exec(t, fmt.Sprintf("UPDATE {rowlock_meta} SET value = '%d' WHERE name IN ('schema_version/%s', 'compatible_from/%[2]s')", version, set))
		}
		newer(sqlstore.Trace, 4)
		s := openTable(t, e)
		if err := s.WriteTrace(t.Context(), nil); !errors.Is(err, lease.ErrSchemaVersion) || !strings.Contains(err.Error(), "set trace") {
			t.Errorf("a newer trace is written: %v", err)
		}
		newer(sqlstore.Shared, 4)
		_, _, err := table.Open(t.Context(), e.DB, e.Dialect, table.Options{Connections: 1, Timeout: 5 * time.Second})
		if !errors.Is(err, lease.ErrSchemaVersion) || !strings.Contains(err.Error(), "set shared") {
			t.Errorf("a newer set of shared tables is opened: %v", err)
		}
	})
}
