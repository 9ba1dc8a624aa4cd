package shedlock_test

import (
	"database/sql"
	"math"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// An operator keeps a job from running by a lock_until that never comes.
func TestARowThatIsLockedForEverIsHeld(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		far, long := []string{"9999-12-31 23:59:59"}, "0000-00-00 00:00:00"
		if e.Driver == "pgx" {
			far, long = append(far, "infinity"), "-infinity"
		} else {
			e.Exec(t, "ALTER TABLE "+table+" MODIFY lock_until DATETIME(3) NOT NULL")
		}
		s := open(t, e, table)
		for _, until := range far {
			e.Exec(t, "INSERT INTO "+table+" (name, lock_until, locked_at, locked_by) VALUES (?, ?, ?, 'ops')",
				until, until, "2026-01-01 00:00:00")
			a := acquire(t, s, until, lease.NewOwner())
			if a.Granted || a.Holder.Remaining <= 0 || a.Holder.Note != "ops" {
				t.Errorf("%s: %+v, want held", until, a)
			}
			list, err := s.Inspect(t.Context(), lease.Filter{Keys: []string{until}})
			if err != nil || len(list) != 1 || !list[0].Held {
				t.Errorf("%s: %+v, %v, want held", until, list, err)
			}
		}
		write := "INSERT INTO " + table + " (name, lock_until, locked_at, locked_by) VALUES (?, ?, ?, 'ops')"
		if _, err := lax(t, e).ExecContext(t.Context(), e.SQL(write), "never", long, long); err != nil {
			t.Fatal(err)
		}
		wantGranted(t, acquire(t, s, "never", lease.NewOwner()))
		if list, err := s.Inspect(t.Context(), lease.Filter{}); err != nil || len(list) != len(far)+1 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// lax is a pool of sessions that write what they can of a value, and of a time that a column cannot
// have nothing.
func lax(t *testing.T, e *testdb.Env) *sql.DB {
	if e.Driver != "mysql" {
		return e.DB
	}
	other := *e
	other.Source += "?sql_mode=''"
	return other.Pool(t)
}

// A TIMESTAMP of MySQL ends in 2038.
func TestALeaseThatOutlastsTheColumnIsNotGrantedTwice(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		for name, db := range map[string]*sql.DB{"strict": e.DB, "lax": lax(t, e)} {
			s, granted := openOn(t, db, e, table), 0
			for range 2 {
				answers, err := s.Acquire(t.Context(), []lease.AcquireRequest{
					{Key: name, Owner: lease.NewOwner(), TTL: math.MaxInt64},
				})
				if err != nil {
					t.Fatal(err)
				}
				if answers[0].Granted {
					granted++
				} else if e.Driver == "mysql" {
					wantRefused(t, answers[0].Err, lease.ErrConfig, "2038", "DATETIME(3)")
				}
			}
			if granted > 1 {
				t.Errorf("%s: two hold a key", name)
			}
		}
	})
}
