package schema_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/schema"
)

// tablesOf are those of core and of sets.
func tablesOf(sets ...schema.Set) []string {
	all := slices.Clone(sqlstore.SetTables[schema.Core])
	for _, set := range sets {
		all = append(all, sqlstore.SetTables[set]...)
	}
	slices.Sort(all)
	return all
}

// uses is what needs each set besides core. Its error is that of the first call which needs it.
var uses = map[schema.Set]func(t *testing.T, s server, db *sql.DB) error{
	schema.Shared: func(t *testing.T, s server, db *sql.DB) error {
		return asClient(t, s, db, nil, func(c *rowlock.Client) error {
			l, err := c.RLock(t.Context(), "k")
			if err == nil {
				err = l.Unlock(t.Context())
			}
			_, limited := c.MakeLimit(t.Context(), lease.Limit{Name: "limit", Slots: 2})
			return errors.Join(err, limited)
		})
	},
	schema.Once: func(t *testing.T, s server, db *sql.DB) error {
		o, err := once.New(db, s.dialect(), nil)
		if err == nil {
			err = o.Close()
		}
		return err
	},
	schema.Latch: func(t *testing.T, s server, db *sql.DB) error {
		l, err := latch.New(db, s.dialect(), nil)
		if err == nil {
			err = l.Close()
		}
		return err
	},
	schema.ForUpdate: func(t *testing.T, s server, db *sql.DB) error {
		l, err := forupdate.NewLocker(db, s.dialect())
		if err == nil {
			err = l.Close()
		}
		return err
	},
	schema.Trace: func(t *testing.T, s server, db *sql.DB) error {
		cfg := &rowlock.Config{Trace: rowlock.TraceConfig{On: true}}
		return asClient(t, s, db, cfg, func(c *rowlock.Client) error {
			_, err := c.Trace(t.Context(), rowlock.TraceFilter{})
			return err
		})
	},
}

func asClient(
	t *testing.T, s server, db *sql.DB, cfg *rowlock.Config, f func(*rowlock.Client) error,
) error {
	t.Helper()
	c, err := rowlock.Open(db, s.dialect(), cfg)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// Each set works beside core alone, and what needs another one names it and how to make it. A later
// Migrate adds sets, and Down and Uninstall remove those that there are.
func TestEachSetStandsBesideCore(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		for set, use := range uses {
			for _, sets := range [][]schema.Set{{schema.Core}, {set}, {set, schema.Core}} {
				if err := schema.Migrate(t.Context(), db, s.dialect(), sets...); err != nil {
					t.Fatalf("%v: %v", sets, err)
				}
				if slices.Contains(sets, set) {
					equal(t, "tables", s.listTables(t, db, ""), tablesOf(set))
					if err := use(t, s, db); err != nil {
						t.Errorf("with the set %s: %v", set, err)
					}
					continue
				}
				equal(t, "tables", s.listTables(t, db, ""), tablesOf())
				for other, use := range uses {
					err := use(t, s, db)
					if !errors.Is(err, lease.ErrNoSchema) || !strings.Contains(err.Error(), "--set "+string(other)) {
						t.Errorf("without the set %s: %v", other, err)
					}
				}
			}
			if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables", s.listTables(t, db, ""), []string{"rowlock_floor", "rowlock_meta"})
			if n := one[int](t, db, "SELECT COUNT(*) FROM rowlock_meta WHERE name LIKE 'schema%'"); n != 0 {
				t.Errorf("Down has left %d versions", n)
			}
		}
		migrate(t, s, db)
		equal(t, "tables", s.listTables(t, db, ""), ourTables)
	})
}

// Core alone is what a lock needs.
func TestACoreOfSixTablesLocks(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		if err := schema.Migrate(t.Context(), db, s.dialect(), schema.Core); err != nil {
			t.Fatal(err)
		}
		if n := len(s.listTables(t, db, "")); n > 6 {
			t.Errorf("core is %d tables", n)
		}
		lockAndUnlock(t, s, db, 3)
	})
}

// Migrate without a set named keeps none out, and one that there is no set for is refused before
// anything is sent.
func TestAnUnknownSetIsRefused(t *testing.T) {
	db := onSQLite.open(t)
	_, files := schema.FS(onSQLite.dialect(), "onec")
	_, _, text := schema.SQL(onSQLite.dialect(), "onec")
	for _, err := range []error{schema.Migrate(t.Context(), db, onSQLite.dialect(), "onec"), files, text} {
		if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), "forupdate") {
			t.Errorf("got %v, want ErrConfig that lists the sets", err)
		}
	}
	equal(t, "tables", onSQLite.listTables(t, db, ""), nil)
}

// FS and SQL by set make what Migrate makes.
func TestFilesBySet(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		files, err := schema.FS(s.dialect(), schema.Once)
		if err != nil {
			t.Fatal(err)
		}
		names, _ := fs.Glob(files, "*")
		equal(t, "files", names, []string{"00033_once.sql"})
		core, _, err := schema.SQL(s.dialect(), schema.Core)
		if err != nil {
			t.Fatal(err)
		}
		more, down, err := schema.SQL(s.dialect(), schema.Once)
		if err != nil {
			t.Fatal(err)
		}
		db, migrated := s.open(t), s.open(t)
		plain(t, db, core)
		plain(t, db, more)
		if err := schema.Migrate(t.Context(), migrated, s.dialect(), schema.Once); err != nil {
			t.Fatal(err)
		}
		if got, want := s.shapes(t, db), s.shapes(t, migrated); got != want {
			t.Errorf("the tables differ from Migrate's:\n%s\n%s", got, want)
		}
		plain(t, db, down)
		equal(t, "tables", s.listTables(t, db, ""), tablesOf())
		if err := schema.Migrate(t.Context(), db, s.dialect(), schema.Latch); err != nil {
			t.Fatal(err)
		}
		equal(t, "tables", s.listTables(t, db, ""), tablesOf(schema.Latch))
	})
}
