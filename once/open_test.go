package once_test

import (
	"database/sql"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

func TestNewLeavesNothingBehind(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.once(t)
		r.wantRows(t, 0)
	})
}

func TestNewRefusesADatabaseWithoutTheTable(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		_, err := once.New(r.DB, r.New(dialect.Prefix("nowhere_")), nil)
		wantIs(t, err, lease.ErrNoSchema)
		r.Exec(t, `DROP TABLE {rowlock_once}`)
		_, err = once.New(r.DB, r.Dialect, nil)
		wantIs(t, err, lease.ErrNoSchema)
		if !strings.Contains(fmt.Sprint(err), "rowlock_once") {
			t.Errorf("got %v", err)
		}
	})
}

func TestNewRefusesATableThatForgets(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		change := map[string]string{"postgres": `SET UNLOGGED`, "mysql": `ENGINE = MyISAM`, "mariadb": `ENGINE = MyISAM`}[r.Name]
		if change == "" {
			t.Skip("SQLite has only one kind of table")
		}
		r.Exec(t, `ALTER TABLE {rowlock_once} `+change)
		_, err := once.New(r.DB, r.Dialect, nil)
		wantIs(t, err, lease.ErrNotDurable)
	})
}

// A user who lacks one right is told which table, and what is needed.
func TestNewRefusesAUserWithoutRights(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("SQLite has no users")
		}
		for _, lacks := range []string{"INSERT", "UPDATE", "DELETE", "SELECT"} {
			_, err := once.New(r.userWithout(t, lacks), r.Dialect, nil)
			wantIs(t, err, lease.ErrPrivilege)
			if !strings.Contains(fmt.Sprint(err), "rowlock_once") {
				t.Errorf("without %s: got %v", lacks, err)
			}
		}
	})
}

// userWithout is a pool of a user who has every right on the tables but one on rowlock_once.
func (r *rig) userWithout(tb testing.TB, right string) *sql.DB {
	tb.Helper()
	user := strings.ToLower("u_" + right + "_" + r.Dialect.Names().Prefix)
	rights := strings.Trim(strings.Replace("SELECT, INSERT, UPDATE, DELETE", right, "", 1), ", ")
	rights = strings.ReplaceAll(rights, ", ,", ",")
	name := user
	if r.Driver == "mysql" {
		name = "'" + user + "'@'%'"
		r.Exec(tb, `CREATE USER `+name)
	} else {
		r.Exec(tb, `CREATE ROLE `+name+` LOGIN`)
	}
	tb.Cleanup(func() {
		if r.Driver == "pgx" {
			r.Exec(tb, `DROP OWNED BY `+name)
		}
		r.Exec(tb, `DROP USER `+name)
	})
	for _, table := range []string{"{rowlock}", "{rowlock_floor}", "{rowlock_queue}", "{rowlock_meta}"} {
		r.Exec(tb, `GRANT SELECT, INSERT, UPDATE, DELETE ON `+table+` TO `+name)
	}
	r.Exec(tb, `GRANT `+rights+` ON {rowlock_once} TO `+name)
	db, err := sql.Open(r.Driver, strings.Replace(strings.Replace(r.Source, "postgres@", user+"@", 1), "root@", user+"@", 1))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// What cannot write is refused before the first call: TxOptions are those of every transaction.
func TestNewRefusesTransactionsThatOnlyRead(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("its driver does not know of such transactions")
		}
		_, err := once.New(r.DB, r.Dialect, &once.Config{TxOptions: &sql.TxOptions{ReadOnly: true}})
		wantIs(t, err, lease.ErrReadOnly)
	})
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	for _, cfg := range []once.Config{
		{Keep: time.Millisecond},
		{Keep: -1},
		{Wait: -1},
		{Wait: time.Hour},
		{Wait: 2 * time.Second, Keep: time.Second},
		{MaxResult: -1},
		{MaxResult: 8<<20 + 1},
		{Keep: 200 * 365 * 24 * time.Hour},
		{Reap: math.MaxInt64},
	} {
		_, err := once.New(e.DB, e.Dialect, &cfg)
		wantIs(t, err, lease.ErrConfig)
	}
	_, err := once.New(e.DB, e.New(dialect.Prefix("a b")), nil)
	wantIs(t, err, lease.ErrConfig)
	_, err = once.New(nil, e.Dialect, nil)
	wantIs(t, err, lease.ErrConfig)
	_, err = once.New(e.DB, nil, nil)
	wantIs(t, err, lease.ErrConfig)
}
