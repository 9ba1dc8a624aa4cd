package fence

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// A transaction that rolled back its UnlockTx has not released the lock. What an operator takes
// then is lost, as soon as anything tells.
func TestAForcedReleaseIsALossAfterARolledBackUnlockTxAndNoneAfterACommit(t *testing.T) {
	t.Parallel()
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		ops := s.Client(m.Set)
		for _, shared := range []bool{false, true} {
			if shared && s.Is("pgbouncer") {
				continue // as on PostgreSQL
			}
			forced := func(c *rowlock.Client, commit bool) *rowlock.Lock {
				s.Helper()
				lock := c.Lock
				if shared {
					lock = c.RLock
				}
				l, err := lock(s.Context(), "k")
				s.OK(err)
				tx := s.Begin(s.Env.DB, nil)
				s.OK(l.UnlockTx(s.Context(), tx))
				if commit {
					s.OK(tx.Commit())
					s.Take(s.Client(m.Set), "k") // whose record is not l's
				} else {
					s.OK(tx.Rollback())
				}
				_, err = ops.ForceRelease(s.Context(), "k", rowlock.Force{Reason: "test"})
				s.OK(err)
				return l
			}
			c := s.Client(m.Set)
			s.WantErr(forced(c, false).Unlock(s.Context()), rowlock.ErrLost)
			l := forced(c, false)
			<-l.Context().Done()
			s.WantErr(context.Cause(l.Context()), rowlock.ErrLost)
			s.OK(forced(c, true).Unlock(s.Context()))
			l = forced(c, true)
			<-l.Context().Done()
			s.WantErr(context.Cause(l.Context()), rowlock.ErrUnlocked)
			s.OK(l.Unlock(s.Context()))
		}
	})
}
