package fence

import (
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// A handler unlocks before its framework commits. The lock has said by UnlockTx when its key is to
// be free, so that there is nothing to tell or to count. The key is free once the transaction has
// ended, whichever way, long before the lease would.
func TestUnlockAfterUnlockTxInAnOpenTransactionSaysNothing(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		for name, end := range map[string]func(*sql.Tx) error{
			"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback,
		} {
			c := s.Client(servertest.WithTTL(time.Hour))
			l := s.Take(c, "k")
			tx := s.Begin(s.Env.DB, nil)
			s.OK(l.UnlockTx(s.Context(), tx))
			s.OK(l.Unlock(s.Context()))
			if n := c.Stats(); n.UnlockFailed != 0 || n.Released != 1 || n.Lost != 0 {
				s.Errorf("%s: counted %+v, want one lock that was released", name, n)
			}
			s.OK(end(tx))
			s.OK(s.Take(s.Client(), "k").Unlock(s.Context()))
		}
	})
}
