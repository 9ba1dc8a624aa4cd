package fault

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Keys are asked for a second time if readers held one of them whose leases have run out.
func TestAnUnknownSecondRequestForSeveralKeysLeavesNone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "pgx" {
			t.Skip("only PostgreSQL grants several keys in one statement, whose reply is their commit's")
		}
		for call, lock := range map[string]func(*rowlock.Client, context.Context) error{
			"TryLockAll": func(c *rowlock.Client, ctx context.Context) error {
				_, err := c.TryLockAll(ctx, []string{"a", "b"})
				return err
			},
			"TryLockAny": func(c *rowlock.Client, ctx context.Context) error {
				_, err := c.TryLockAny(ctx, []string{"a", "b"})
				return err
			},
		} {
			t.Run(call, func(t *testing.T) {
				f := newFaulty(t, e, nil)
				for _, key := range []string{"a", "b"} {
					_ = servertest.Locked(t)(f.other.TryRLock(t.Context(), key, rowlock.NoRenew()))
				}
				e.Exec(t, `UPDATE {rowlock_member} SET expires_at = {now} - {second}`)
				f.faults.Set(afterGroups())
				err := lock(f.Client, t.Context())
				f.faults.Set(nil)
				servertest.WantErr(t, err, rowlock.ErrUnknown)
				f.wantFreeSoon(t, "a")
				f.wantFreeSoon(t, "b")
			})
		}
	})
}

// afterGroups loses the reply to each grant after a reader group was ended.
func afterGroups() faultdb.Injector {
	var ended atomic.Bool
	return faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		switch {
		case op.Executes() && strings.Contains(op.Query, "/* rowlock readers-end */"):
			ended.Store(true)
		case ended.Load() && grants(op):
			return faultdb.LoseReply()
		}
		return faultdb.None
	})
}
