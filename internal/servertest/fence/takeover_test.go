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

// isolations are the levels a user's transaction may have.
func isolations(s *servertest.Scene) []*sql.TxOptions {
	if s.Is("sqlite") {
		return []*sql.TxOptions{nil}
	}
	return []*sql.TxOptions{
		nil, {Isolation: sql.LevelRepeatableRead}, {Isolation: sql.LevelSerializable},
	}
}

// The heart of it: from the fence to the end of the transaction no other client gets the key,
// however long ago the lease expired.
func TestATakeoverWaitsForTheFenceToEnd(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		for i, opts := range isolations(s) {
			st := servertest.WithStrategy(servertest.Strategies[i%2])
			holder, rival, other := s.Client(st), s.Client(st), s.Client(st)
			takeoverWaits(s, holder, rival, other, opts, (*sql.Tx).Commit)
			takeoverWaits(s, holder, rival, other, opts, (*sql.Tx).Rollback)
		}
	})
}

func takeoverWaits(s *servertest.Scene, holder, rival, other *rowlock.Client, opts *sql.TxOptions,
	end func(*sql.Tx) error,
) {
	s.Helper()
	l, tx := s.Fenced(holder, "k", true, opts)
	got := make(chan *rowlock.Lock, 1)
	go func() { got <- s.Take(rival, "k") }()
	s.AtOnce(1500*time.Millisecond, "a TryLock of an expired key behind a fence",
		func() { s.WantHeld(other, "k") })
	select {
	case next := <-got:
		s.Fatalf("token %d was granted while token %d was fenced", next.Token(), l.Token())
	default:
	}
	s.OK(l.Fence(s.Context(), tx)) // still
	s.OK(end(tx))
	next := <-got
	s.Above(next, l)
	tx = s.Begin(s.Env.DB, opts)
	s.WantErr(l.Fence(s.Context(), tx), rowlock.ErrFenced)
	s.OK(tx.Rollback())
	s.OK(next.Unlock(s.Context()))
}

// Losing costs nothing while the holder is inside a transaction, however long.
func TestALoserIsRefusedAtOnceWhileTheHolderIsInAFence(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		holder := s.Client(servertest.WithTTL(time.Minute))
		for _, st := range servertest.Strategies {
			rival := s.Client(servertest.WithStrategy(st))
			for name, check := range servertest.Checks {
				l := s.Take(holder, name)
				tx := s.Begin(s.Env.DB, nil)
				s.OK(check(l, s.Context(), tx))
				for range 3 {
					// A statement waits a second for a locked row.
					s.AtOnce(900*time.Millisecond, "a TryLock while the holder is in "+name, func() {
						if held := s.WantHeld(rival, name); held.Remaining < 30*time.Second {
							s.Errorf("%s: %s of a minute remain", name, held.Remaining)
						}
					})
				}
				s.OK(tx.Rollback())
				s.OK(l.Unlock(s.Context()))
			}
		}
	})
}

// A transaction longer than the lease keeps the lock to its end: no deadlock with the watchdog,
// no loss while it lasts, and the truth afterwards.
func TestATransactionLongerThanTheLeaseKeepsTheLock(t *testing.T) {
	t.Parallel()
	const lasts = 10 * time.Second
	servertest.Each(t, func(s *servertest.Scene) {
		// Behind a fence a holder trusts its lease for a margin after each answer, and asks four times
		// in that time: a busy machine may keep the watchdog waiting for three quarters of it.
		c := s.Client(servertest.WithTTL(lasts/2), func(c *rowlock.Config) { c.Margin = lasts / 4 })
		for _, taken := range []bool{false, true} {
			l, tx := s.Fenced(c, "k", false, nil)
			s.Elapse(lasts)
			if err := l.Context().Err(); err != nil {
				s.Errorf("the lock ended within its own fence: %v", context.Cause(l.Context()))
			}
			s.OK(l.Fence(s.Context(), tx))
			s.OK(tx.Commit())
			if taken {
				verdictWhenTaken(s, l)
			} else {
				verdictWhenAlone(s, l)
			}
		}
	})
}

// verdictWhenTaken has another client take the key after the fence: its late holder learns so.
func verdictWhenTaken(s *servertest.Scene, l *rowlock.Lock) {
	s.Helper()
	next := s.Take(s.Client(), l.Key())
	s.Above(next, l)
	<-l.Context().Done()
	s.WantErr(context.Cause(l.Context()), rowlock.ErrLost)
	s.WantErr(l.Unlock(s.Context()), rowlock.ErrLost)
	s.OK(next.Unlock(s.Context()))
}

// verdictWhenAlone releases a lock that no other client wanted: Unlock's answer agrees with the
// row.
func verdictWhenAlone(s *servertest.Scene, l *rowlock.Lock) {
	s.Helper()
	err := l.Unlock(s.Context())
	if err != nil && !errors.Is(err, rowlock.ErrLost) {
		s.Errorf("unlock: %v", err)
	}
	if n := s.Number(`SELECT count(*) FROM {rowlock} WHERE {key} = ? AND owner IS NULL`,
		[]byte(l.Key())); err == nil && n != 1 {
		s.Error("unlocked without an error, and the row still names an owner")
	}
}

// A transaction that was fenced off and is not rolled back yet, as it should be, does not cost
// its successor the lock. (InnoDB keeps every row locked that a locking read has found by its
// whole key: there it would.)
func TestARefusedFenceDoesNotDisturbTheHolder(t *testing.T) {
	t.Parallel()
	const lasts = 3 * time.Second // a shorter lease is lost by a process that gets no turn
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		holder := s.Client(servertest.WithTTL(lasts),
			func(c *rowlock.Config) { c.RenewEvery = lasts / 9 })
		var holders []*rowlock.Lock
		for i, opts := range isolations(s) {
			late := s.Take(s.Client(), servertest.Numbered(i))
			s.Env.Expire(s, late.Key())
			holders = append(holders, s.Take(holder, late.Key()))
			s.WantErr(late.Fence(s.Context(), s.Begin(s.Env.DB, opts)), rowlock.ErrFenced)
		}
		s.Elapse(lasts)
		for _, l := range holders {
			if l.Context().Err() != nil {
				s.Errorf("%q was lost to a transaction that was fenced off", l.Key())
			}
			s.OK(l.Unlock(s.Context()))
		}
	})
}

// In SQLite a transaction that read before another connection wrote cannot write any more. The
// order is the caller's to change, and the error must say so.
func TestAFenceAfterAReadInADeferredTransactionSaysWhatToDo(t *testing.T) {
	t.Parallel()
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		deferred := s.Dial("sqlite",
			strings.Replace(s.Env.Source, "_txlock=immediate", "_txlock=deferred", 1))
		c := s.Client()
		l := s.Take(c, "k")
		for name, check := range servertest.Checks {
			tx := s.Begin(deferred, nil)
			var n int
			s.OK(tx.QueryRowContext(s.Context(), s.Env.SQL(`SELECT count(*) FROM {rowlock}`)).Scan(&n))
			s.OK(s.Take(c, "other").Unlock(s.Context())) // another connection writes
			err := check(l, s.Context(), tx)
			if err == nil || errors.Is(err, rowlock.ErrFenced) ||
				!strings.Contains(err.Error(), "before any read") {
				s.Errorf("%s: %v", name, err)
			}
			s.OK(tx.Rollback())
		}
		tx := s.Begin(deferred, nil)
		s.OK(l.Fence(s.Context(), tx)) // first
		s.OK(tx.Commit())
	})
}

// A read in a transaction that began before shows an older world. The fence does not read it.
func TestAFenceSeesThePresentInAnOldSnapshot(t *testing.T) {
	t.Parallel()
	servertest.EachServer(t, func(s *servertest.Scene) {
		for _, opts := range isolations(s) {
			if s.Env.Driver == "mysql" && opts != nil && opts.Isolation == sql.LevelSerializable {
				continue // every read locks, so that nothing can change
			}
			c := s.Client()
			l := s.Take(c, "k")
			tx := s.Begin(s.Env.DB, opts)
			var n int
			// the snapshot is now
			s.OK(tx.QueryRowContext(s.Context(), s.Env.SQL(`SELECT count(*) FROM {rowlock}`)).Scan(&n))
			s.Env.Expire(s, "k")
			next := s.Take(s.Client(), "k")
			if err := l.Fence(s.Context(), tx); err == nil {
				s.Errorf("under %v: token %d passed the fence after %d was granted", opts, l.Token(),
					next.Token())
			}
			s.OK(tx.Rollback())
			s.OK(next.Unlock(s.Context()))
		}
	})
}

// SQLite has one write lock for everything. A waiter for a key waits for that too, as long as it
// takes.
func TestLockWaitsForATransactionThatHasNothingToDoWithIt(t *testing.T) {
	t.Parallel()
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		table := s.Ledger()
		c := s.Client()
		tx := s.Begin(s.Env.DB, nil)
		s.Add(tx, table)
		got := make(chan *rowlock.Lock, 1)
		go func() { got <- s.Take(c, "free") }()
		s.Elapse(2 * time.Second)
		s.OK(tx.Commit())
		s.OK((<-got).Unlock(s.Context()))
	})
}

// A client that vanishes with its connection open, in the middle of a sweep, has rows locked. If
// a server can end such a transaction by itself, pinned connections have it do so.
func TestAVanishedClientsTransactionIsEnded(t *testing.T) {
	t.Parallel()
	for product, query := range map[string]string{
		"postgres": `SELECT extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)::int`,
		"mariadb":  `SELECT @@idle_transaction_timeout`,
	} {
		servertest.On(t, product, func(s *servertest.Scene) {
			if limit := s.Party(rowlock.Update).Number(query); limit < 1 || limit > 4 {
				s.Errorf("it is ended after %d s, want 4 at most", limit)
			}
		})
	}
}
