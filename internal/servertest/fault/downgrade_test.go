package fault

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// makesGroup matches the statement that makes a reader group of a lease.
func makesGroup(op faultdb.Op) bool {
	return op.Executes() && strings.Contains(op.Query, "/* rowlock readers-make */")
}

// committing breaks the first COMMIT after a reader group was made.
func committing(fault faultdb.Fault) faultdb.Injector {
	var made, over atomic.Bool
	return faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		commits := op.Kind == faultdb.Commit || op.Executes() && strings.EqualFold(op.Query, "COMMIT")
		switch {
		case makesGroup(op):
			made.Store(true)
		case commits && made.Load() && over.CompareAndSwap(false, true):
			return fault
		}
		return faultdb.None
	})
}

// Whether it was carried out or not, the lock is lost, and the key is soon free of both that the
// lease may be.
func TestADowngradeOfUnknownOutcomeLeavesNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for when, block := range map[string]func(*faultdb.Gate) faultdb.Fault{
			"before its COMMIT": faultdb.Block, "after its COMMIT": faultdb.BlockAfter,
		} {
			t.Run(when, func(t *testing.T) {
				t.Parallel()
				f := newFaulty(t, e, nil)
				l := servertest.Locked(t)(f.TryLock(t.Context(), when))
				gate := faultdb.NewGate()
				defer gate.Release()
				f.faults.Set(committing(block(gate)))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				result := servertest.Aside(func() error { return l.Downgrade(ctx) })
				servertest.Await(t, servertest.Patience, gate.Arrived(), "the COMMIT")
				cancel()
				err := servertest.Await(t, servertest.Promptly, result, "the canceled Downgrade")
				servertest.WantErr(t, err, rowlock.ErrUnknown)
				servertest.WantErr(t, context.Cause(l.Context()), rowlock.ErrLost)
				gate.Release()
				servertest.WantErr(t, l.Unlock(t.Context()), rowlock.ErrLost)
				f.wantFreeSoon(t, when)
				wantNoMember(t, e, when)
			})
		}
	})
}

// denied are errors of drivers that say that a statement was not carried out.
var denied = map[string]error{
	"pgx": &pgconn.PgError{Code: "42501"}, "mysql": &mysql.MySQLError{Number: 1142},
}

// A second try finds no lease to make a reader group of, and it cannot be asked why: the first try
// may have made one.
func TestADowngradeIsUnknownIfItsFirstTryMayHaveBeenCarriedOut(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		no := denied[e.Driver]
		if no == nil {
			t.Skip("the errors of this driver cannot be made")
		}
		f := newFaulty(t, e, nil)
		l := servertest.Locked(t)(f.TryLock(t.Context(), "key"))
		f.faults.Set(faultdb.Any(committing(faultdb.LoseReply()), faultdb.OnMatch("/* rowlock member-",
			faultdb.Nth(1, faultdb.FailBeforeSend().Reporting(no)))))
		servertest.WantErr(t, l.Downgrade(t.Context()), rowlock.ErrUnknown, lease.ErrPrivilege)
		servertest.WantErr(t, l.Unlock(t.Context()), rowlock.ErrLost)
		f.wantFreeSoon(t, "key")
		wantNoMember(t, e, "key")
	})
}

// The connection breaks once, and a second try tells.
func TestADowngradeOverABrokenConnectionIsOne(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for phase, fault := range map[string]faultdb.Fault{
			"never sent": faultdb.FailBeforeSend(), "reply lost": faultdb.LoseReply(),
		} {
			for what, on := range map[string]func(faultdb.Fault) faultdb.Injector{
				"statement": func(fault faultdb.Fault) faultdb.Injector {
					return faultdb.OnFunc(makesGroup, faultdb.Nth(1, fault))
				},
				"COMMIT": committing,
			} {
				t.Run(fmt.Sprint(what, " ", phase), func(t *testing.T) {
					f := newFaulty(t, e, nil)
					key := what + phase
					l := servertest.Locked(t)(f.TryLock(t.Context(), key))
					hits := faultdb.NewCounter(on(fault))
					f.faults.Set(hits)
					servertest.WantErr(t, l.Downgrade(t.Context()), nil)
					if hits.Faults() != 1 {
						t.Fatal("no fault was injected")
					}
					wantLives(t, l)
					beside := servertest.Locked(t)(f.other.TryRLock(t.Context(), key))
					servertest.WantErr(t, beside.Unlock(t.Context()), nil)
					servertest.WantErr(t, l.Unlock(t.Context()), nil)
					f.wantFreeSoon(t, key)
					wantNoMember(t, e, key)
				})
			}
		}
	})
}

func wantNoMember(tb testing.TB, e *testdb.Env, key string) {
	tb.Helper()
	var n int
	err := e.DB.QueryRowContext(context.Background(),
		e.SQL(`SELECT count(*) FROM {rowlock_member} WHERE {key} = ?`), []byte(key)).Scan(&n)
	if err != nil || n > 0 {
		tb.Errorf("%d members of %q, %v", n, key, err)
	}
}
