package rowlock_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// wantStuck is the error of an Unlock that its own transaction is in the way of.
func (s *scene) wantStuck(err error) {
	s.Helper()
	s.wantErr(err, rowlock.ErrUnknown)
	if err != nil && !strings.Contains(err.Error(), "has fenced this lock and has not ended: end it before Unlock, or use UnlockTx") {
		s.Errorf("%v: does not say what is in the way", err)
	}
}

// Where the holder's own transaction is still open no waiting helps, and the client knows: it says so at once, and frees the key when
// that transaction has ended.
func TestUnlockInsideItsOwnFencedTransactionSaysSo(t *testing.T) {
	eachScene(t, func(s *scene) {
		c := s.client(withTTL(time.Minute))
		l, tx := s.fenced(c, "k", false, nil)
		s.quick(1500*time.Millisecond, "an Unlock inside the lock's own transaction", func() { s.wantStuck(l.Unlock(s.Context())) })
		s.ok(tx.Commit())
		s.ok(s.take(s.client(), "k").Unlock(s.Context()))

		all, err := c.LockAll(s.Context(), []string{"a", "b", "free"})
		s.ok(err)
		tx = s.begin(s.env.DB, nil)
		s.ok(all.Lock("a").Fence(s.Context(), tx))
		s.ok(all.Lock("b").Fence(s.Context(), tx))
		if s.is("sqlite") { // where the transaction locks every row
			s.ok(all.Lock("free").Fence(s.Context(), tx))
		}
		s.quick(1500*time.Millisecond, "an Unlock of several locks inside their own transaction", func() { s.wantStuck(all.Unlock(s.Context())) })
		s.ok(tx.Rollback())
		for _, key := range []string{"a", "b", "free"} {
			s.ok(s.take(s.client(), key).Unlock(s.Context()))
		}
	})
}

// A *sql.Conn does not know whether its transaction has ended. Unlock tries for as long as it ever does, and then says what it has found.
func TestUnlockInsideATransactionThatCannotBeAskedSaysWhatItSeems(t *testing.T) {
	eachScene(t, func(s *scene) {
		s.Parallel()
		l := s.take(s.client(withTTL(time.Minute)), "k")
		conn, err := s.env.DB.Conn(s.Context())
		s.ok(err)
		defer conn.Close()
		s.exec(conn, `BEGIN`)
		s.ok(l.Fence(s.Context(), conn))
		s.wantStuck(l.Unlock(s.Context()))
		s.exec(conn, `COMMIT`)
		s.ok(s.take(s.client(), "k").Unlock(s.Context()))
	})
}

// A transaction that has gone back to before its fence has the row no longer, and Unlock does what it is to do.
func TestUnlockInsideATransactionThatHasUndoneItsFence(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		l := s.take(s.client(), "k")
		tx := s.begin(s.env.DB, nil)
		s.exec(tx, `SAVEPOINT before`)
		s.ok(l.Fence(s.Context(), tx))
		s.exec(tx, `ROLLBACK TO SAVEPOINT before`)
		s.ok(l.Unlock(s.Context()))
		s.ok(tx.Rollback())
	})
}

// A COMMIT whose caller has gone may still be under way when Unlock comes. It is waited for.
func TestUnlockWaitsForACommitThatIsUnderWay(t *testing.T) {
	eachScene(t, func(s *scene) {
		l, tx := s.fenced(s.client(withTTL(time.Minute)), "k", false, nil)
		late := &endsLate{Tx: tx}
		unlocked := make(chan error, 1)
		s.ok(l.Fence(s.Context(), late)) // which does not say whether it is open, as after Commit
		go func() { unlocked <- l.Unlock(context.Background()) }()
		<-l.Context().Done() // Unlock has begun
		if !s.is("sqlite") {
			s.eventually("the release to wait for the row, or an answer", func() bool { return len(unlocked) > 0 || s.waiting() })
		}
		s.ok(tx.Commit())
		s.ok(<-unlocked)
	})
}

// endsLate is a transaction that hides everything but what Fence needs.
type endsLate struct{ rowlock.Tx }

var _ rowlock.Tx = (*sql.Tx)(nil)
