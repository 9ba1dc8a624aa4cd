package servertest

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock"
)

// Cycle is everything an application does with locks, once with each strategy, on the pool that
// it writes with, while a reaper removes every dead row. The result must not depend on a
// session's settings. table is a ledger.
func (s *Scene) Cycle(db *sql.DB, table string) {
	s.Helper()
	rival := s.Client()
	for _, st := range Strategies {
		key := "cycle " + st.String()
		c := s.ClientOn(db, WithStrategy(st), WithSweep(10*time.Millisecond))
		l := s.cycleFence(db, c, rival, key, table)
		l = s.cycleUnlockTx(db, c, rival, l)
		s.cycleTakeover(db, c, rival, l)
		s.Eventually("dead rows to be swept", func() bool { return s.Rows() == 0 })
		s.Above(s.Take(c, key), l)
		s.OK(c.Close())
	}
}

// Above checks the order of two grants.
func (s *Scene) Above(next, last *rowlock.Lock) {
	s.Helper()
	if next.Token() <= last.Token() {
		s.Errorf("%q: token %d after %d", next.Key(), next.Token(), last.Token())
	}
}

func (s *Scene) cycleFence(db *sql.DB, c, rival *rowlock.Client, key, table string) *rowlock.Lock {
	s.Helper()
	const note = "cycle ' \\ \" ` é"
	l := s.Take(c, key, rowlock.Note(note), rowlock.TTL(time.Minute))
	if held := s.WantHeld(rival, key); held.Remaining > time.Minute ||
		held.Remaining < 50*time.Second || !strings.HasPrefix(held.Note, "cycle ' \\ \" `") {
		s.Errorf("the loser saw %q, %s", held.Note, held.Remaining)
	}
	before := s.Number(`SELECT n FROM ` + table)
	tx := s.Begin(db, nil)
	s.OK(l.Fence(s.Context(), tx))
	s.Add(tx, table)
	s.OK(l.Fence(s.Context(), tx))
	s.OK(tx.Commit())
	if n := s.Number(`SELECT n FROM ` + table); n != before+1 {
		s.Errorf("%d fenced writes, want 1", n-before)
	}
	return l
}

// cycleUnlockTx releases a lock within transactions: one that rolls back, and one that commits.
func (s *Scene) cycleUnlockTx(db *sql.DB, c, rival *rowlock.Client,
	l *rowlock.Lock,
) (next *rowlock.Lock) {
	s.Helper()
	tx := s.Begin(db, nil)
	s.OK(l.UnlockTx(s.Context(), tx))
	s.OK(tx.Rollback())
	s.WantHeld(rival, l.Key())
	tx = s.Begin(db, nil)
	s.OK(l.UnlockTx(s.Context(), tx))
	s.OK(tx.Commit())
	next = s.Take(rival, l.Key())
	s.Above(next, l)
	s.OK(l.Unlock(s.Context()))
	s.WantHeld(c, l.Key())
	return next
}

// cycleTakeover lets a lease expire, and sees that its late holder is refused.
func (s *Scene) cycleTakeover(db *sql.DB, c, rival *rowlock.Client, late *rowlock.Lock) {
	s.Helper()
	s.Env.Expire(s, late.Key())
	next := s.Take(c, late.Key())
	s.Above(next, late)
	for _, try := range []func(context.Context, rowlock.Tx) error{late.Fence, late.UnlockTx} {
		tx := s.Begin(db, nil)
		s.WantErr(try(s.Context(), tx), rowlock.ErrFenced)
		s.OK(tx.Rollback())
	}
	s.WantErr(late.Unlock(s.Context()), rowlock.ErrLost)
	s.WantHeld(rival, late.Key())
	s.OK(next.Unlock(s.Context()))
	last := s.Take(rival, late.Key())
	s.Above(last, next)
	s.OK(last.Unlock(s.Context()))
	s.WantErr(last.Unlock(s.Context()), rowlock.ErrUnlocked)
}

// Add adds one to a ledger.
func (s *Scene) Add(tx execer, table string) {
	s.Helper()
	s.Exec(tx, `UPDATE `+table+` SET n = n + 1 WHERE id = 1`)
}
