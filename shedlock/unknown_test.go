package shedlock_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A write of which no answer came may run yet, whatever the next try finds: that a process has locked
// the row by another clock, or that sessions do not commit.
func TestAWriteWithoutAnAnswerIsUnknownAlsoBeforeARefusal(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		ahead := "UPDATE " + table + " SET locked_by = 'java', locked_at = " + testdb.Later + ", lock_until = " + testdb.Later
		lose := faultdb.Func(func(faultdb.Op) faultdb.Fault {
			e.Exec(t, ahead)
			return faultdb.FailBeforeSend()
		})
		db, err := faultdb.Open(e.Driver, e.Source, faultdb.OnMatch("lock_until = greatest", lose))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s, holder := openOn(t, db, e, table), lease.NewOwner()
		direct := open(t, e, table)
		wantGranted(t, acquire(t, direct, "k", holder))
		if release(t, direct, "k", holder).Gone {
			t.Fatal("not released")
		}
		answers, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: ttl}})
		if err != nil {
			t.Fatal(err)
		}
		wantRefused(t, answers[0].Err, lease.ErrUnknown, "usingDbTime")
	})
}
