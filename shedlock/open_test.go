package shedlock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/shedlock"
)

func wantRefused(t *testing.T, err, is error, says ...string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Errorf("%v, want %v", err, is)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%v does not say %q", err, s)
		}
	}
}

// What is replaced in the columns makes another version of the table. Each is refused with the cure.
func TestOtherVersionsOfTheTableAreRefused(t *testing.T) {
	stamp := map[string]string{"pgx": "TIMESTAMP NOT NULL", "mysql": "TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)"}
	variants := []struct {
		name, driver, from, to string
		is                     error
		says                   []string
	}{
		{"with time zones", "pgx", "TIMESTAMP ", "TIMESTAMPTZ ", lease.ErrSchemaVersion, []string{"lock_until is a timestamp with time zone", "TYPE TIMESTAMP"}},
		{"of seconds", "pgx", "TIMESTAMP ", "TIMESTAMP(0) ", lease.ErrSchemaVersion, []string{"no milliseconds"}},
		{"of seconds", "mysql", "(3)", "", lease.ErrSchemaVersion, []string{"no milliseconds", "MODIFY COLUMN lock_until TIMESTAMP(3)"}},
		{"of texts", "", "locked_at {stamp}", "locked_at VARCHAR(20) NOT NULL", lease.ErrSchemaVersion, []string{"locked_at is a"}},
		{"of ShedLock 2", "", "locked_by VARCHAR(255) NOT NULL", "locked_by VARCHAR(255)", lease.ErrSchemaVersion, []string{"locked_by may be NULL", "NOT NULL"}},
		{"with other names", "", "lock_until", "lockUntil_", lease.ErrSchemaVersion, []string{"lock_until is missing", "rename"}},
		{"with a column more", "", "PRIMARY", "env VARCHAR(9) NOT NULL, PRIMARY", lease.ErrSchemaVersion, []string{"column env", "default"}},
		{"without a key", "", ", PRIMARY KEY (name)", "", lease.ErrSchemaVersion, []string{"name is not unique", "ADD PRIMARY KEY (name)"}},
		{"with a key of two", "", "KEY (name)", "KEY (name, locked_by)", lease.ErrSchemaVersion, []string{"name is not unique"}},
		{"without a holder", "", "locked_by ", "holder ", lease.ErrSchemaVersion, []string{"locked_by is missing"}},
		{"with a holder of numbers", "", "locked_by VARCHAR(255)", "locked_by INT", lease.ErrSchemaVersion, []string{"locked_by is a int"}},
		{"with a short holder", "", "VARCHAR(255)", "VARCHAR(64)", lease.ErrSchemaVersion, []string{"locked_by has 64 characters", "VARCHAR(255)"}},
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
				if v.driver != "" && v.driver != e.Driver {
					t.Skip("it is another on this database")
				}
				fill := strings.NewReplacer("{stamp}", stamp[e.Driver])
				name := table(t, e, strings.ReplaceAll(columns(e), fill.Replace(v.from), v.to))
				_, err := shedlock.Open(t.Context(), e.DB, e.Dialect, shedlock.Table(name))
				wantRefused(t, err, v.is, append(v.says, name)...)
			})
		})
	}
}

func TestATableThatLosesItsRowsIsRefused(t *testing.T) {
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		name := e.Dialect.Names().Prefix + "shedlock"
		create, says := "CREATE TABLE "+name+" ("+columns(e)+") ENGINE=MyISAM", "ENGINE=InnoDB"
		if e.Driver == "pgx" {
			create, says = "CREATE UNLOGGED TABLE "+name+" ("+columns(e)+")", "SET LOGGED"
		}
		e.Exec(t, create)
		t.Cleanup(func() { e.Exec(t, "DROP TABLE "+name) })
		_, err := shedlock.Open(t.Context(), e.DB, e.Dialect, shedlock.Table(name))
		wantRefused(t, err, lease.ErrNotDurable, says)
	})
}

func TestWithoutATableOpenSaysHowToMakeIt(t *testing.T) {
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		name := e.Dialect.Names().Prefix + "none"
		_, err := shedlock.Open(t.Context(), e.DB, e.Dialect, shedlock.Table(name))
		wantRefused(t, err, lease.ErrNoSchema, "CREATE TABLE "+name)
		_, create, _ := strings.Cut(err.Error(), ": CREATE")
		e.Exec(t, "CREATE"+create)
		t.Cleanup(func() { e.Exec(t, "DROP TABLE "+name) })
		open(t, e, name)
	})
}

// A TIMESTAMP of MySQL's is another in each time zone.
func TestAPoolWithATimeZoneOfItsOwnIsRefused(t *testing.T) {
	for _, k := range testdb.Servers[1:] {
		t.Run(k.Name, func(t *testing.T) {
			e := k.Open(t)
			name := table(t, e, columns(e))
			dsn := e.Source + "?time_zone=%27-07%3A00%27"
			other := *e
			other.Source = dsn
			_, err := shedlock.Open(t.Context(), other.Pool(t), e.Dialect, shedlock.Table(name))
			wantRefused(t, err, lease.ErrConfig, "-07:00", "DATETIME(3)")
			e.Exec(t, "ALTER TABLE "+name+" MODIFY lock_until DATETIME(3) NOT NULL, MODIFY locked_at DATETIME(3) NOT NULL")
			wantGranted(t, acquire(t, openOn(t, other.Pool(t), e, name), "k", lease.NewOwner()))
			if acquire(t, open(t, e, name), "k", lease.NewOwner()).Granted {
				t.Error("the key is held twice")
			}
		})
	}
}

func TestWhatIsNoTableOfShedLocksIsRefused(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	_, err := shedlock.Open(t.Context(), e.DB, e.Dialect)
	wantRefused(t, err, lease.ErrUnsupported, "sqlite")
	_, err = shedlock.Open(t.Context(), e.DB, postgres.New(), shedlock.Table("a; b"))
	wantRefused(t, err, lease.ErrConfig, `"a; b"`)
	_, err = shedlock.Open(t.Context(), nil, postgres.New())
	wantRefused(t, err, lease.ErrConfig, "nil")
}

func TestOpenRefusesWhatIsNil(t *testing.T) {
	db, d := new(sql.DB), postgres.New()
	for _, c := range []struct {
		says string
		open func() (*shedlock.Store, error)
	}{
		{"ctx is nil", func() (*shedlock.Store, error) { return shedlock.Open(noContext, db, d) }},
		{"shedlock.Open needs a database", func() (*shedlock.Store, error) { return shedlock.Open(t.Context(), nil, d) }},
		{"shedlock.Open needs a database", func() (*shedlock.Store, error) { return shedlock.Open(t.Context(), db, nil) }},
		{"option 2 is nil", func() (*shedlock.Store, error) {
			return shedlock.Open(t.Context(), db, d, shedlock.Table("t"), nil)
		}},
	} {
		_, err := c.open()
		wantRefused(t, err, lease.ErrConfig, c.says)
	}
}

var noContext context.Context
