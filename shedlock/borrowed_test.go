package shedlock_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/shedlock"
)

// An application has sent SET search_path or USE on a connection before it was returned to the pool.
// There is such a table too: of another tenant.
func TestWhatTheApplicationHasSentOnAConnectionLeadsToNoOtherTable(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		other := e.Dialect.Names().Prefix + "tenant"
		enter, drop := "USE "+other, "DROP DATABASE "+other
		if e.Driver == "pgx" {
			enter, drop = "SET search_path TO "+other, "DROP SCHEMA "+other+" CASCADE"
		}
		e.Exec(t, "CREATE SCHEMA "+other)
		t.Cleanup(func() { e.Exec(t, drop) })
		e.Exec(t, "CREATE TABLE "+other+"."+table+" ("+columns(e)+")")
		db := e.Pool(t)
		db.SetMaxOpenConns(1)
		s, holder := openOn(t, db, e, table), lease.NewOwner()
		wantGranted(t, acquire(t, s, "k", holder))
		if _, err := db.ExecContext(t.Context(), enter); err != nil {
			t.Fatal(err)
		}
		if acquire(t, s, "k", lease.NewOwner()).Granted {
			t.Error("two hold a key")
		}
		if r := renew(t, s, "k", holder); r.Outcome == lease.Lost || r.Err != nil {
			t.Errorf("the holder's renewal: %+v", r)
		}
		if release(t, s, "k", holder).Gone {
			t.Error("the holder's release has found another table")
		}
		again := openOn(t, db, e, table)
		wantGranted(t, acquire(t, again, "k", holder))
		if acquire(t, open(t, e, table), "k", lease.NewOwner()).Granted {
			t.Error("two hold a key, of a store that was opened on such a connection")
		}
	})
}

// A grant in what the application has left open would be undone with the connection, and with another
// clock it would end for others sooner or later than for the holder.
func TestASessionThatTheApplicationHasChangedGrantsNoKeyTwice(t *testing.T) {
	for _, k := range testdb.Servers[1:] {
		e := k.Open(t)
		name := table(t, e, columns(e))
		for _, change := range []string{
			"SET autocommit = 0", "START TRANSACTION", "SET completion_type = CHAIN",
			"SET time_zone = '-07:00'", "SET time_zone = '+07:00'",
			"SET timestamp = 1000000", "SET timestamp = 2000000000",
		} {
			t.Run(k.Name+" "+change, func(t *testing.T) {
				db := e.Pool(t)
				db.SetMaxOpenConns(1)
				s, direct, holder := openOn(t, db, e, name), open(t, e, name), lease.NewOwner()
				leave := func() {
					if _, err := db.ExecContext(t.Context(), change); err != nil {
						t.Fatal(err)
					}
				}
				leave()
				wantGranted(t, acquire(t, s, change, holder))
				_ = db.Close()
				if a := acquire(t, direct, change, lease.NewOwner()); a.Granted || a.Holder.Remaining > ttl {
					t.Errorf("the holder's connection has ended: %+v, want held for %s", a, ttl)
				}
				if release(t, direct, change, holder).Gone {
					t.Error("the holder's release has found nothing")
				}

				db = e.Pool(t)
				db.SetMaxOpenConns(1)
				s = openOn(t, db, e, name)
				wantGranted(t, acquire(t, direct, change, holder))
				leave()
				if acquire(t, s, change, lease.NewOwner()).Granted {
					t.Error("two hold a key")
				}
			})
		}
	}
}

func TestAPoolWhoseSessionsCommitNothingIsRefused(t *testing.T) {
	for _, k := range testdb.Servers[1:] {
		t.Run(k.Name, func(t *testing.T) {
			e := k.Open(t)
			name := table(t, e, columns(e))
			e.Source += "?autocommit=0"
			_, err := shedlock.Open(t.Context(), e.Pool(t), e.Dialect, shedlock.Table(name))
			wantRefused(t, err, lease.ErrConfig, "autocommit = 0", "DSN")
		})
	}
}

func TestALimitBelowZeroIsNone(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		s := open(t, e, table)
		wantGranted(t, acquire(t, s, "k", lease.NewOwner()))
		if list, err := s.Inspect(t.Context(), lease.Filter{Limit: -1}); err != nil || len(list) != 1 {
			t.Errorf("%v %v, want the row", list, err)
		}
	})
}
