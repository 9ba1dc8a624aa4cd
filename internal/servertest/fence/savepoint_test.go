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
	t.Parallel()
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
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		l, other := s.Take(s.Client(), "k", rowlock.NoRenew()), s.Client()
		s.Env.Expire(s.T, "k")
		tx := s.Begin(s.Env.DB, nil)
		s.OK(l.Fence(s.Context(), tx))
		s.Exec(tx, `SAVEPOINT inner_one`)
		s.OK(l.Fence(s.Context(), tx))
		s.OK(l.Fence(s.Context(), tx))
		s.Exec(tx, `ROLLBACK TO SAVEPOINT inner_one`)
		s.OK(l.Fence(s.Context(), tx))
		s.Exec(tx, `RELEASE SAVEPOINT inner_one`)
		s.Exec(tx, `SAVEPOINT inner_two`)
		s.OK(l.Fence(s.Context(), tx))
		s.Exec(tx, `SAVEPOINT inner_three`)
		s.OK(l.Fence(s.Context(), tx))
		s.Exec(tx, `ROLLBACK TO SAVEPOINT inner_two`)
		stillHeld(s, other, tx)
	})
}

// A program that goes on after a fence was refused has no later one pass because of it.
func TestAFenceThatWasRefusedInASavepointLetsNoOtherPass(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		if !s.Is("postgres") {
			s.T.Skip("no fence is refused there")
		}
		l := s.Take(s.Client(), "k", rowlock.NoRenew())
		tx := s.Begin(s.Env.DB, nil)
		s.Exec(tx, `SAVEPOINT inner_one`)
		for range 2 {
			if err := l.Fence(s.Context(), tx); err == nil {
				s.Error("a fence in a savepoint has passed")
			}
		}
		if _, err := tx.Exec(`RELEASE SAVEPOINT inner_one`); err == nil {
			s.Error("what a refused fence has written was kept")
		}
		s.OK(tx.Rollback())
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
