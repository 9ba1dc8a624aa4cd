package fence

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// wantStuck fails the test unless err is that of an Unlock that its own transaction blocks.
func wantStuck(s *servertest.Scene, err error) {
	s.Helper()
	s.WantErr(err, rowlock.ErrUnknown)
	if err != nil && !saysWhy(err) {
		s.Errorf("%v: does not say what is in the way", err)
	}
}

func saysWhy(err error) bool {
	return strings.Contains(err.Error(), "has fenced this lock and has not ended: end it before Unlock, or use UnlockTx")
}

// If the holder's own transaction is still open, no waiting helps, and the client knows. Unlock
// returns an error at once, and the client frees the key when that transaction has ended.
func TestUnlockInsideItsOwnFencedTransactionSaysSo(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client(servertest.WithTTL(time.Minute))
		next := s.Client()
		servertest.AtOnce(s, atOnce, "an Unlock inside the lock's own transaction", func() time.Duration {
			l, tx := s.Fenced(c, "k", false, nil)
			began := time.Now()
			wantStuck(s, l.Unlock(s.Context()))
			took := time.Since(began)
			s.OK(tx.Commit())
			s.OK(s.Take(next, "k").Unlock(s.Context()))
			return took
		})
		servertest.AtOnce(s, atOnce, "an Unlock of several locks inside their own transaction",
			func() time.Duration { return unlockAllInside(s, c, next) })
	})
}

// atOnce is sooner than the time for which Unlock tries.
const atOnce = 1500 * time.Millisecond

func unlockAllInside(s *servertest.Scene, c, next *rowlock.Client) (took time.Duration) {
	s.Helper()
	all, err := c.LockAll(s.Context(), []string{"a", "b", "free"})
	s.OK(err)
	tx := s.Begin(s.Env.DB, nil)
	s.OK(all.Lock("a").Fence(s.Context(), tx))
	s.OK(all.Lock("b").Fence(s.Context(), tx))
	if s.Is("sqlite") { // where the transaction locks every row
		s.OK(all.Lock("free").Fence(s.Context(), tx))
	}
	began := time.Now()
	wantStuck(s, all.Unlock(s.Context()))
	took = time.Since(began)
	s.OK(tx.Rollback())
	for _, key := range all.Keys() {
		s.OK(s.Take(next, key).Unlock(s.Context()))
	}
	return took
}

// A *sql.Conn does not know whether its transaction has ended. Unlock tries for as long as it
// ever does, and then returns what it found. A busy machine may not answer in the quarter of a
// second in which it looks.
func TestUnlockInsideATransactionThatCannotBeAskedSaysWhatItSeems(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		for tries := 4; ; tries-- {
			l := s.Take(s.Client(servertest.WithTTL(time.Minute)), "k")
			conn, err := s.Env.DB.Conn(s.Context())
			s.OK(err)
			s.Exec(conn, `BEGIN`)
			s.OK(l.Fence(s.Context(), conn))
			err = l.Unlock(s.Context())
			s.Exec(conn, `COMMIT`)
			s.OK(conn.Close())
			s.OK(s.Take(s.Client(), "k").Unlock(s.Context()))
			if tries == 1 || err == nil || saysWhy(err) {
				wantStuck(s, err)
				return
			}
		}
	})
}

// A transaction that rolled back to a savepoint before its fence no longer locks the row, and
// Unlock releases the key.
func TestUnlockInsideATransactionThatHasUndoneItsFence(t *testing.T) {
	t.Parallel()
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		l := s.Take(s.Client(), "k")
		tx := s.Begin(s.Env.DB, nil)
		s.Exec(tx, `SAVEPOINT before`)
		if err := l.Fence(s.Context(), tx); !errors.Is(err, rowlock.ErrConfig) {
			s.Errorf("a fence in a savepoint: %v", err)
		}
		s.Exec(tx, `ROLLBACK TO SAVEPOINT before`)
		s.OK(l.Unlock(s.Context()))
		s.OK(tx.Rollback())
	})
}

// A COMMIT whose caller has left may still be under way when Unlock is called. Unlock waits for
// it.
func TestUnlockWaitsForACommitThatIsUnderWay(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		l, tx := s.Fenced(s.Client(servertest.WithTTL(time.Minute)), "k", false, nil)
		late := &endsLate{Tx: tx}
		unlocked := make(chan error, 1)
		s.OK(l.Fence(s.Context(), late)) // which does not say whether it is open, as after Commit
		go func() { unlocked <- l.Unlock(context.Background()) }()
		<-l.Context().Done() // Unlock has begun
		if !s.Is("sqlite") {
			s.Eventually("the release to wait for the row, or an answer",
				func() bool { return len(unlocked) > 0 || waiting(s) })
		}
		s.OK(tx.Commit())
		s.OK(<-unlocked)
	})
}

// endsLate is a transaction that hides everything but what Fence needs.
type endsLate struct{ rowlock.Tx }

func (endsLate) Rollback() error { return nil }

var _ rowlock.Tx = (*sql.Tx)(nil)
