package fence

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// What comes after ROLLBACK TO is written under the fence, or the fence was refused: PostgreSQL
// unlocks what was locked since the savepoint, and the others keep it until the transaction ends.
// InnoDB does so only if the transaction has used a table before the savepoint, as here.
func TestNoOneTakesAKeyAfterARollbackToASavepoint(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		l, other := s.Take(s.Client(), "k", rowlock.NoRenew()), s.Client()
		s.Env.Expire(s.T, "k")
		tx := s.Begin(s.Env.DB, nil)
		s.Exec(tx, `UPDATE {rowlock_meta} SET value = value WHERE name = 'instance'`)
		s.Exec(tx, `SAVEPOINT inner_one`)
		err := l.Fence(s.Context(), tx)
		if s.Is("postgres") {
			if !errors.Is(err, rowlock.ErrConfig) || !strings.Contains(err.Error(), "before the first savepoint") {
				s.Errorf("a fence in a savepoint: %v", err)
			}
			s.OK(tx.Rollback())
			return
		}
		s.OK(err)
		s.Exec(tx, `ROLLBACK TO SAVEPOINT inner_one`)
		stillHeld(s, other, tx)
	})
}

// A fence before the first savepoint stays, and fences inside of savepoints are then as good.
func TestAFenceBeforeTheSavepointStays(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		l, other := s.Take(s.Client(), "k", rowlock.NoRenew()), s.Client()
		s.Env.Expire(s.T, "k")
		tx := s.Begin(s.Env.DB, nil)
		s.OK(l.Fence(s.Context(), tx))
		s.Exec(tx, `SAVEPOINT inner_one`)
		s.OK(l.Fence(s.Context(), tx))
		s.Exec(tx, `ROLLBACK TO SAVEPOINT inner_one`)
		s.OK(l.Fence(s.Context(), tx))
		s.Exec(tx, `RELEASE SAVEPOINT inner_one`)
		stillHeld(s, other, tx)
	})
}

// stillHeld wants the key of a lease that has expired not to be granted while tx is open.
func stillHeld(s *servertest.Scene, other *rowlock.Client, tx *sql.Tx) {
	s.Helper()
	if next, err := other.TryLock(s.Context(), "k"); err == nil {
		s.Errorf("token %d was granted beside an open fence", next.Token())
	}
	s.OK(tx.Commit())
	s.OK(s.Take(other, "k").Unlock(s.Context()))
}
