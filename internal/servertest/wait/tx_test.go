package wait

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// A lock that is released in a transaction goes to a waiter when that commits: of the holder's
// own process or of another.
func TestUnlockTxWakesTheWaitersAfterTheCommitAndNotBefore(t *testing.T) {
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		s.Eventually("waiters that are served in time, on a busy machine too", func() bool {
			return servedInTime(s, m)
		})
	})
}

// servedInTime reports false if one of the waiters was served late: on a busy machine a poll may
// meet a row that another statement has locked just then, and the next comes hintPoll later.
func servedInTime(s *servertest.Scene, m servertest.Mode) (timely bool) {
	leaving(s, m, func(l *rowlock.Lock, waiting []<-chan got, finish func(commit bool)) {
		stillWaits(s, hintPoll/2, waiting...)
		committed := time.Now()
		finish(true)
		pulse := s.Pulse() // not sooner: SQLite's one write lock was the transaction's
		s.OK(l.Unlock(s.Context()))
		first, next := either(s, waiting)
		took := first.at.Sub(committed)
		if took < 0 {
			s.Errorf("the first was served %s before the commit", -took)
		}
		s.OK(first.l.Unlock(s.Context()))
		freed := time.Now()
		g := granted(s, next)
		limit := pulse.Allow(hintPoll + waitSlack)
		s.Logf("served %s after the commit and %s after the first, at most %s each", took, g.at.Sub(freed), limit)
		timely = took <= limit && g.at.Sub(freed) <= limit
		if first.l.Token() != l.Token()+1 || g.l.Token() != l.Token()+2 {
			s.Errorf("tokens %d and %d after %d", first.l.Token(), g.l.Token(), l.Token())
		}
		s.OK(g.l.Unlock(s.Context()))
	})
	return timely
}

// The second section does not ask who waits, because the first has just asked: the waiter that came
// in between is served by its next poll, although its polls may be rare.
func TestAWaiterThatComesAfterASectionHasAskedIsServedSoon(t *testing.T) {
	eachWaking(t, func(s *servertest.Scene) {
		seldom := func(c *rowlock.Config) { c.PollMin, c.PollMax = hintPoll, time.Minute }
		here, there, pulse := s.Client(seldom), s.Client(seldom), s.Pulse()
		empty := func(context.Context, *sql.Tx) error { return nil }
		for _, key := range []string{"a", "b", "c"} { // the waiter is registered for none before
			s.OK(here.DoTx(s.Context(), key, empty))
			var waiting <-chan got
			s.OK(here.DoTx(s.Context(), key, func(context.Context, *sql.Tx) error {
				waiting = waits(s, s.Context(), there, key)
				s.Eventually("a process to be registered", func() bool { // it need not listen
					return s.Number(`SELECT count(*) FROM {rowlock_queue} WHERE {key} = ?`, []byte(key)) == 1
				})
				return nil
			}))
			freed := time.Now()
			g := granted(s, waiting)
			if took, limit := g.at.Sub(freed), pulse.Allow(2*hintPoll+waitSlack); took > limit {
				s.Errorf("served %s after the section, want at most %s", took, limit)
			}
			s.OK(g.l.Unlock(s.Context()))
		}
	})
}

// A transaction that rolls back has released nothing.
func TestUnlockTxThatRollsBackWakesNoWaiterIntoAGrant(t *testing.T) {
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		leaving(s, m, func(l *rowlock.Lock, waiting []<-chan got, finish func(commit bool)) {
			finish(false)
			stillWaits(s, hintPoll+waitSlack, waiting...)
			if l.Context().Err() != nil {
				s.Errorf("the lock has ended: %v", l.Context().Err())
			}
			s.OK(l.Unlock(s.Context()))
			first, next := either(s, waiting)
			s.OK(first.l.Unlock(s.Context()))
			g := granted(s, next)
			if first.l.Token() != l.Token()+1 || g.l.Token() != l.Token()+2 {
				s.Errorf("tokens %d and %d after %d", first.l.Token(), g.l.Token(), l.Token())
			}
			s.OK(g.l.Unlock(s.Context()))
		})
	})
}

// leaving releases a lock in a transaction that is still open, while two calls wait for it: one
// in the holder's process and one in another.
func leaving(s *servertest.Scene, m servertest.Mode,
	f func(l *rowlock.Lock, waiting []<-chan got, finish func(commit bool)),
) {
	s.Helper()
	here, there := s.Client(m.Set, servertest.WithPoll(hintPoll)),
		s.Client(m.Set, servertest.WithPoll(hintPoll))
	l := s.Take(here, "leaving")
	waiting := []<-chan got{
		waits(s, s.Context(), here, "leaving"), waits(s, s.Context(), there, "leaving"),
	}
	tx := s.Begin(s.Env.DB, nil)
	s.OK(l.UnlockTx(s.Context(), tx))
	f(l, waiting, func(commit bool) {
		if commit {
			s.OK(tx.Commit())
		} else {
			s.OK(tx.Rollback())
		}
	})
}

// either returns the first grant of two waiting calls, and the other call.
func either(s *servertest.Scene, waiting []<-chan got) (first got, next <-chan got) {
	s.Helper()
	select {
	case first = <-waiting[0]:
		next = waiting[1]
	case first = <-waiting[1]:
		next = waiting[0]
	case <-time.After(servertest.Patience):
		s.Fatal("neither call got the key")
	}
	s.OK(first.err)
	return first, next
}
