package rowlock_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// A lock that is given back in a transaction is the waiters' when that commits: those of the holder's own process and of others.
func TestUnlockTxWakesTheWaitersAfterTheCommitAndNotBefore(t *testing.T) {
	eachMode(t, func(s *scene, m mode) {
		s.leaving(m, func(l *rowlock.Lock, waiting []<-chan got, finish func(commit bool)) {
			s.stillWaits(hintPoll/2, waiting...)
			committed := time.Now()
			finish(true)
			s.ok(l.Unlock(s.Context()))
			first, next := s.either(waiting)
			if took, limit := first.at.Sub(committed), hintPoll+waitSlack; took < 0 || took > limit {
				s.Errorf("the first was served %s after the commit, want 0 to %s", took, limit)
			}
			s.ok(first.l.Unlock(s.Context()))
			freed := time.Now()
			g := s.granted(next)
			if took, limit := g.at.Sub(freed), hintPoll+waitSlack; took > limit {
				s.Errorf("the next was served %s later, want at most %s", took, limit)
			}
			if first.l.Token() != l.Token()+1 || g.l.Token() != l.Token()+2 {
				s.Errorf("tokens %d and %d after %d", first.l.Token(), g.l.Token(), l.Token())
			}
			s.ok(g.l.Unlock(s.Context()))
		})
	})
}

// A transaction that rolls back has given nothing away.
func TestUnlockTxThatRollsBackWakesNobodyIntoAGrant(t *testing.T) {
	eachMode(t, func(s *scene, m mode) {
		s.leaving(m, func(l *rowlock.Lock, waiting []<-chan got, finish func(commit bool)) {
			finish(false)
			s.stillWaits(hintPoll+waitSlack, waiting...)
			if l.Context().Err() != nil {
				s.Errorf("the lock has ended: %v", l.Context().Err())
			}
			s.ok(l.Unlock(s.Context()))
			first, next := s.either(waiting)
			s.ok(first.l.Unlock(s.Context()))
			g := s.granted(next)
			if first.l.Token() != l.Token()+1 || g.l.Token() != l.Token()+2 {
				s.Errorf("tokens %d and %d after %d", first.l.Token(), g.l.Token(), l.Token())
			}
			s.ok(g.l.Unlock(s.Context()))
		})
	})
}

// leaving has a lock that two wait for, one in the holder's process and one in another, given back in a transaction that is not over.
func (s *scene) leaving(m mode, f func(l *rowlock.Lock, waiting []<-chan got, finish func(commit bool))) {
	s.Helper()
	here, there := s.client(m.set, withPoll(hintPoll)), s.client(m.set, withPoll(hintPoll))
	l := s.take(here, "leaving")
	waiting := []<-chan got{s.waits(s.Context(), here, "leaving"), s.waits(s.Context(), there, "leaving")}
	tx := s.begin(s.env.DB, nil)
	s.ok(l.UnlockTx(s.Context(), tx))
	f(l, waiting, func(commit bool) {
		if commit {
			s.ok(tx.Commit())
		} else {
			s.ok(tx.Rollback())
		}
	})
}

// either is the first of two to be granted the key, and the other.
func (s *scene) either(waiting []<-chan got) (first got, next <-chan got) {
	s.Helper()
	select {
	case first = <-waiting[0]:
		next = waiting[1]
	case first = <-waiting[1]:
		next = waiting[0]
	case <-time.After(scenePatience):
		s.Fatal("nobody got the key")
	}
	s.ok(first.err)
	return first, next
}
