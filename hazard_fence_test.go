package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// fenced takes key, has its lease run out in the store, and fences it: whoever comes now may take it, but for the fence. The
// lease runs out first, because in SQLite nobody can write to the row afterwards.
func (s *scene) fenced(c *rowlock.Client, key string, expired bool, opts *sql.TxOptions) (*rowlock.Lock, *sql.Tx) {
	s.Helper()
	l := s.take(c, key)
	if expired {
		s.env.Expire(s, key)
	}
	tx := s.begin(s.env.DB, opts)
	s.ok(l.Fence(s.Context(), tx))
	return l, tx
}

// isolations are the levels a user's transaction may have.
func (s *scene) isolations() []*sql.TxOptions {
	if s.is("sqlite") {
		return []*sql.TxOptions{nil}
	}
	return []*sql.TxOptions{nil, {Isolation: sql.LevelRepeatableRead}, {Isolation: sql.LevelSerializable}}
}

// The heart of it: from the fence to the end of the transaction nobody gets the key, however long ago the lease ran out.
func TestATakeoverWaitsForTheFenceToEnd(t *testing.T) {
	eachScene(t, func(s *scene) {
		for i, opts := range s.isolations() {
			st := withStrategy(bothStrategies[i%2])
			holder, rival, other := s.client(st), s.client(st), s.client(st)
			s.takeoverWaits(holder, rival, other, opts, (*sql.Tx).Commit)
			s.takeoverWaits(holder, rival, other, opts, (*sql.Tx).Rollback)
		}
	})
}

func (s *scene) takeoverWaits(holder, rival, other *rowlock.Client, opts *sql.TxOptions, end func(*sql.Tx) error) {
	s.Helper()
	l, tx := s.fenced(holder, "k", true, opts)
	got := make(chan *rowlock.Lock, 1)
	go func() { got <- s.take(rival, "k") }()
	s.quick(1500*time.Millisecond, "a TryLock of an expired key behind a fence", func() { s.wantHeld(other, "k") })
	select {
	case next := <-got:
		s.Fatalf("token %d was granted while token %d was fenced", next.Token(), l.Token())
	default:
	}
	s.ok(l.Fence(s.Context(), tx)) // still
	s.ok(end(tx))
	next := <-got
	s.above(next, l)
	tx = s.begin(s.env.DB, opts)
	s.wantErr(l.Fence(s.Context(), tx), rowlock.ErrFenced)
	s.ok(tx.Rollback())
	s.ok(next.Unlock(s.Context()))
}

// Losing costs nothing while the holder is inside a transaction, however long.
func TestALoserIsToldAtOnceWhileTheHolderIsInAFence(t *testing.T) {
	eachScene(t, func(s *scene) {
		holder := s.client(withTTL(time.Minute))
		for _, st := range bothStrategies {
			rival := s.client(withStrategy(st))
			for name, check := range checks {
				l := s.take(holder, name)
				tx := s.begin(s.env.DB, nil)
				s.ok(check(l, s.Context(), tx))
				for range 3 {
					s.quick(250*time.Millisecond, "a TryLock while the holder is in "+name, func() {
						if held := s.wantHeld(rival, name); held.Remaining < 50*time.Second {
							s.Errorf("%s: %s of a minute remain", name, held.Remaining)
						}
					})
				}
				s.ok(tx.Rollback())
				s.ok(l.Unlock(s.Context()))
			}
		}
	})
}

// A transaction longer than the lease keeps the lock to its end: no deadlock with the watchdog, no loss while it lasts, and
// afterwards the truth.
func TestATransactionLongerThanTheLeaseKeepsTheLock(t *testing.T) {
	const lasts = 6 * time.Second // half of it is what a busy machine may keep the watchdog waiting
	eachScene(t, func(s *scene) {
		s.Parallel()
		c := s.client(withTTL(lasts / 2))
		for _, taken := range []bool{false, true} {
			l, tx := s.fenced(c, "k", false, nil)
			s.atLeast(lasts)
			if err := l.Context().Err(); err != nil {
				s.Errorf("the lock ended within its own fence: %v", context.Cause(l.Context()))
			}
			s.ok(l.Fence(s.Context(), tx))
			s.ok(tx.Commit())
			if taken {
				s.verdictWhenTaken(l)
			} else {
				s.verdictWhenAlone(l)
			}
		}
	})
}

// verdictWhenTaken has another take the key after the fence: its late holder is told.
func (s *scene) verdictWhenTaken(l *rowlock.Lock) {
	s.Helper()
	next := s.take(s.client(), l.Key())
	s.above(next, l)
	<-l.Context().Done()
	s.wantErr(context.Cause(l.Context()), rowlock.ErrLost)
	s.wantErr(l.Unlock(s.Context()), rowlock.ErrLost)
	s.ok(next.Unlock(s.Context()))
}

// verdictWhenAlone gives back a lock that nobody else wanted: what Unlock says is what the row says.
func (s *scene) verdictWhenAlone(l *rowlock.Lock) {
	s.Helper()
	err := l.Unlock(s.Context())
	if err != nil && !errors.Is(err, rowlock.ErrLost) {
		s.Errorf("unlock: %v", err)
	}
	if n := s.number(`SELECT count(*) FROM {rowlock} WHERE {key} = ? AND owner IS NULL`, []byte(l.Key())); err == nil && n != 1 {
		s.Error("unlocked without an error, and the row still names an owner")
	}
}

// A transaction that was fenced off and is not rolled back yet, as it should be, does not cost its successor the lock. (InnoDB
// keeps every row locked that a locking read has looked at by its whole key: there it would.)
func TestARefusedFenceDoesNotDisturbTheHolder(t *testing.T) {
	const lasts = 900 * time.Millisecond
	onScene(t, "postgres", func(s *scene) {
		holder := s.client(withTTL(lasts), func(c *rowlock.Config) { c.RenewEvery = lasts / 9 })
		var holders []*rowlock.Lock
		for i, opts := range s.isolations() {
			late := s.take(s.client(), numbered(i))
			s.env.Expire(s, late.Key())
			holders = append(holders, s.take(holder, late.Key()))
			s.wantErr(late.Fence(s.Context(), s.begin(s.env.DB, opts)), rowlock.ErrFenced)
		}
		s.atLeast(lasts)
		for _, l := range holders {
			if l.Context().Err() != nil {
				s.Errorf("%q was lost to a transaction that was fenced off", l.Key())
			}
			s.ok(l.Unlock(s.Context()))
		}
	})
}

// In SQLite a transaction that has read before somebody else wrote cannot write any more. That is a matter of the order, which
// the error must say.
func TestAFenceAfterAReadInADeferredTransactionSaysWhatToDo(t *testing.T) {
	onScene(t, "sqlite", func(s *scene) {
		deferred := s.dial("sqlite", strings.Replace(s.env.Source, "_txlock=immediate", "_txlock=deferred", 1))
		c := s.client()
		l := s.take(c, "k")
		for name, check := range checks {
			tx := s.begin(deferred, nil)
			var n int
			s.ok(tx.QueryRowContext(s.Context(), s.env.SQL(`SELECT count(*) FROM {rowlock}`)).Scan(&n))
			s.ok(s.take(c, "other").Unlock(s.Context())) // somebody writes
			err := check(l, s.Context(), tx)
			if err == nil || errors.Is(err, rowlock.ErrFenced) || !strings.Contains(err.Error(), "before any read") {
				s.Errorf("%s: %v", name, err)
			}
			s.ok(tx.Rollback())
		}
		tx := s.begin(deferred, nil)
		s.ok(l.Fence(s.Context(), tx)) // first
		s.ok(tx.Commit())
	})
}

// A read in a transaction that began before shows an older world. The fence does not read it.
func TestAFenceSeesThePresentInAnOldSnapshot(t *testing.T) {
	eachServer(t, func(s *scene) {
		for _, opts := range s.isolations() {
			if s.env.Driver == "mysql" && opts != nil && opts.Isolation == sql.LevelSerializable {
				continue // every read locks, so that nothing can change
			}
			c := s.client()
			l := s.take(c, "k")
			tx := s.begin(s.env.DB, opts)
			var n int
			s.ok(tx.QueryRowContext(s.Context(), s.env.SQL(`SELECT count(*) FROM {rowlock}`)).Scan(&n)) // the snapshot is now
			s.env.Expire(s, "k")
			next := s.take(s.client(), "k")
			if err := l.Fence(s.Context(), tx); err == nil {
				s.Errorf("under %v: token %d passed the fence after %d was granted", opts, l.Token(), next.Token())
			}
			s.ok(tx.Rollback())
			s.ok(next.Unlock(s.Context()))
		}
	})
}

// SQLite has one write lock for everything. Who waits for a key waits for that too, as long as it takes.
func TestLockWaitsForATransactionThatHasNothingToDoWithIt(t *testing.T) {
	onScene(t, "sqlite", func(s *scene) {
		table := s.ledger()
		c := s.client()
		tx := s.begin(s.env.DB, nil)
		s.add(tx, table)
		got := make(chan *rowlock.Lock, 1)
		go func() { got <- s.take(c, "free") }()
		s.atLeast(2 * time.Second)
		s.ok(tx.Commit())
		s.ok((<-got).Unlock(s.Context()))
	})
}

// A client that vanishes with its connection open, in the middle of a sweep, has rows locked. Where a server can
// end such a transaction by itself, lanes have it do so.
func TestAVanishedClientsTransactionIsEnded(t *testing.T) {
	for product, query := range map[string]string{
		"postgres": `SELECT extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)::int`,
		"mariadb":  `SELECT @@idle_transaction_timeout`,
	} {
		onScene(t, product, func(s *scene) {
			if limit := s.party(rowlock.Update).number(query); limit < 1 || limit > 4 {
				s.Errorf("it is ended after %d s, want 4 at most", limit)
			}
		})
	}
}
