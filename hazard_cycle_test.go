package rowlock_test

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock"
)

// cycle is everything an application does with locks, once with each strategy, on the pool that it writes with, while a
// reaper leaves no dead row standing: whatever a session is set to, it must come out the same. table is a ledger.
func (s *scene) cycle(db *sql.DB, table string) {
	s.Helper()
	rival := s.client()
	for _, st := range bothStrategies {
		key := "cycle " + st.String()
		c := s.clientOn(db, withStrategy(st), withSweep(10*time.Millisecond))
		l := s.cycleFence(db, c, rival, key, table)
		l = s.cycleUnlockTx(db, c, rival, l)
		s.cycleTakeover(db, c, rival, l)
		s.eventually("dead rows to be swept", func() bool { return s.rows() == 0 })
		s.above(s.take(c, key), l)
		s.ok(c.Close())
	}
}

// above checks the order of two terms.
func (s *scene) above(next, last *rowlock.Lock) {
	s.Helper()
	if next.Token() <= last.Token() {
		s.Errorf("%q: token %d after %d", next.Key(), next.Token(), last.Token())
	}
}

func (s *scene) cycleFence(db *sql.DB, c, rival *rowlock.Client, key, table string) *rowlock.Lock {
	s.Helper()
	const note = "cycle ' \\ \" ` é"
	l := s.take(c, key, rowlock.Note(note), rowlock.TTL(time.Minute))
	if held := s.wantHeld(rival, key); held.Remaining > time.Minute || held.Remaining < 50*time.Second || !strings.HasPrefix(held.Note, "cycle ' \\ \" `") {
		s.Errorf("the loser was told of %q, %s", held.Note, held.Remaining)
	}
	before := s.number(`SELECT n FROM ` + table)
	tx := s.begin(db, nil)
	s.ok(l.Fence(s.Context(), tx))
	s.add(tx, table)
	s.ok(l.Fence(s.Context(), tx))
	s.ok(tx.Commit())
	if n := s.number(`SELECT n FROM ` + table); n != before+1 {
		s.Errorf("%d fenced writes, want 1", n-before)
	}
	return l
}

// cycleUnlockTx gives a lock back within transactions: one that rolls back, and one that commits.
func (s *scene) cycleUnlockTx(db *sql.DB, c, rival *rowlock.Client, l *rowlock.Lock) (next *rowlock.Lock) {
	s.Helper()
	tx := s.begin(db, nil)
	s.ok(l.UnlockTx(s.Context(), tx))
	s.ok(tx.Rollback())
	s.wantHeld(rival, l.Key())
	tx = s.begin(db, nil)
	s.ok(l.UnlockTx(s.Context(), tx))
	s.ok(tx.Commit())
	next = s.take(rival, l.Key())
	s.above(next, l)
	s.ok(l.Unlock(s.Context()))
	s.wantHeld(c, l.Key())
	return next
}

// cycleTakeover lets a lease run out, and has its late holder refused.
func (s *scene) cycleTakeover(db *sql.DB, c, rival *rowlock.Client, late *rowlock.Lock) {
	s.Helper()
	s.env.Expire(s, late.Key())
	next := s.take(c, late.Key())
	s.above(next, late)
	for _, try := range []func(context.Context, rowlock.Tx) error{late.Fence, late.UnlockTx} {
		tx := s.begin(db, nil)
		s.wantErr(try(s.Context(), tx), rowlock.ErrFenced)
		s.ok(tx.Rollback())
	}
	s.wantErr(late.Unlock(s.Context()), rowlock.ErrLost)
	s.wantHeld(rival, late.Key())
	s.ok(next.Unlock(s.Context()))
	last := s.take(rival, late.Key())
	s.above(last, next)
	s.ok(last.Unlock(s.Context()))
	s.wantErr(last.Unlock(s.Context()), rowlock.ErrUnlocked)
}

func (s *scene) add(tx execer, table string) {
	s.Helper()
	s.exec(tx, `UPDATE `+table+` SET n = n + 1 WHERE id = 1`)
}
