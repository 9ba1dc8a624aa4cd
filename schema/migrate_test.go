package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

var ourTables = []string{"rowlock", "rowlock_floor", "rowlock_forced", "rowlock_hold", "rowlock_latch", "rowlock_limit", "rowlock_member", "rowlock_meta", "rowlock_once", "rowlock_party", "rowlock_queue", "rowlock_trace", "rowlock_wait"}

func migrate(t testing.TB, s server, db *sql.DB) {
	t.Helper()
	if err := schema.Migrate(t.Context(), db, s.dialect()); err != nil {
		t.Fatal(err)
	}
}

// complete fails the test unless the tables are all there and filled.
func complete(t testing.TB, s server, db *sql.DB) {
	t.Helper()
	equal(t, "tables", s.listTables(t, db, ""), ourTables)
	equal(t, "floors, first, last, sum", []int64{
		one[int64](t, db, "SELECT COUNT(*) FROM rowlock_floor"), one[int64](t, db, "SELECT MIN(bucket) FROM rowlock_floor"),
		one[int64](t, db, "SELECT MAX(bucket) FROM rowlock_floor"), one[int64](t, db, "SELECT SUM(floor) FROM rowlock_floor"),
	}, []int64{lease.Buckets, 0, lease.Buckets - 1, 0})
	if v := one[int](t, db, "SELECT value FROM rowlock_meta WHERE name = 'schema_version'"); v != schema.Version {
		t.Errorf("schema_version is %d, want %d", v, schema.Version)
	}
	if v := instance(t, db); !uuid.MatchString(v) {
		t.Errorf("instance is %q, want a UUID", v)
	}
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func instance(t testing.TB, db *sql.DB) string {
	t.Helper()
	return one[string](t, db, "SELECT value FROM rowlock_meta WHERE name = 'instance'")
}

func TestMigrateTwice(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		complete(t, s, db)
		before := instance(t, db)
		exec(t, db, "UPDATE rowlock_floor SET floor = 7 WHERE bucket = 3")

		migrate(t, s, db)
		if instance(t, db) != before || one[int](t, db, "SELECT floor FROM rowlock_floor WHERE bucket = 3") != 7 {
			t.Error("the second run changed what the first had made")
		}
	})
}

// Each process of a fleet calls Migrate when it starts. Two reads are what that may cost, and those
// that find the schema, or on SQLite the driver: no lock, in which they would queue.
func TestUpToDateOnlyReads(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := s.fresh(t, s)
		migrate(t, s, open(t, driver, dsn))
		var log faultdb.Log
		db, err := faultdb.Open(driver, dsn, &log)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		migrate(t, s, db)
		reads := 2 + map[string]int{"sqlite": 1, "postgres": 1, "mysql": 2, "mariadb": 2}[s.name]
		if queries := log.Queries(); len(queries) != reads {
			t.Errorf("it took %d statements: %q", len(queries), queries)
		}
	})
}

func TestMigrateNeedsOneConnection(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		db.SetMaxOpenConns(1)
		migrate(t, s, db)
		complete(t, s, db)
	})
}

func TestManyMigrateAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		// One who sleeps between two attempts is late each time.
		servertest.AtOnce(t, 10*time.Second, "a migration by 8", func() time.Duration {
			driver, dsn := s.fresh(t, s)
			started := time.Now()
			together(t, 8, func() error {
				db, err := sql.Open(driver, dsn)
				if err != nil {
					return err
				}
				defer db.Close()
				return schema.Migrate(context.Background(), db, s.dialect())
			})
			took := time.Since(started)
			complete(t, s, open(t, driver, dsn))
			return took
		})
	})
}

// together runs n calls of f, all begun before any has ended.
func together(t *testing.T, n int, f func() error) {
	t.Helper()
	start := make(chan struct{})
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f()
		})
	}
	close(start)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func TestInstancesDiffer(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		a, b := s.open(t), s.open(t)
		migrate(t, s, a)
		migrate(t, s, b)
		if instance(t, a) == instance(t, b) {
			t.Errorf("two databases are both %s", instance(t, a))
		}
	})
}

func TestNewerTablesAreLeftAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		exec(t, db, "UPDATE rowlock_meta SET value = '999' WHERE name IN ('schema_version', 'compatible_from')")
		if err := schema.Migrate(t.Context(), db, s.dialect()); !errors.Is(err, lease.ErrSchemaVersion) {
			t.Errorf("got %v, want ErrSchemaVersion", err)
		}
		exec(t, db, "UPDATE rowlock_meta SET value = 'new' WHERE name IN ('schema_version', 'compatible_from')")
		if err := schema.Migrate(t.Context(), db, s.dialect()); !errors.Is(err, lease.ErrCorrupt) {
			t.Errorf("got %v, want ErrCorrupt", err)
		}
		equal(t, "tables", s.listTables(t, db, ""), ourTables)
	})
}
