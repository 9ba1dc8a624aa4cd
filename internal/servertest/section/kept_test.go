package section

import (
	"context"
	"database/sql"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

func TestALockIsKeptByItsSections(t *testing.T) {
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		table, c, other := s.Ledger(), s.Client(m.Set), s.Client(m.Set)
		l := s.Take(c, "k")
		for range 3 {
			s.OK(l.DoTx(s.Context(), add(table)))
			s.WantHeld(other, "k")
		}
		s.OK(l.Unlock(s.Context()))
		wantFree(s, "k")
		if n := ledger(s, table); n != 3 {
			s.Errorf("n is %d, want 3", n)
		}
		if n := c.Stats(); n.Released != 1 || n.Lost != 0 || n.UnlockFailed != 0 {
			s.Errorf("counted %+v, want one lock that was released", n)
		}
	})
}

func TestASectionThatFailsLeavesNothingAndKeepsItsLock(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, other := s.Ledger(), s.Client()
		l := s.Take(s.Client(), "k")
		for name, end := range map[string]func() error{
			"error": func() error { return errTest },
			"panic": func() error { panic(errTest) },
			"exit":  func() error { runtime.Goexit(); return nil },
		} {
			var ended sync.WaitGroup
			ended.Go(func() {
				defer func() { _ = recover() }()
				err := l.DoTx(s.Context(), func(ctx context.Context, tx *sql.Tx) error {
					s.OK(add(table)(ctx, tx))
					return end()
				})
				s.WantErr(err, errTest)
			})
			ended.Wait()
			s.WantHeld(other, "k")
			if n := ledger(s, table); n != 0 {
				s.Errorf("%s: n is %d, want 0", name, n)
			}
		}
		s.OK(l.Unlock(s.Context()))
		wantFree(s, "k")
	})
}

// Whoever takes the key from a holder that does not notice it keeps the holder's function from
// running.
func TestASectionOfALockThatWasLostWritesNothing(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		l := s.Take(s.Client(), "k", rowlock.NoRenew())
		s.Env.Expire(s, "k")
		next := s.Take(s.Client(), "k")
		never := func(context.Context, *sql.Tx) error { s.Error("the function ran"); return nil }
		err := l.DoTx(s.Context(), never)
		s.WantErr(err, rowlock.ErrFenced)
		s.WantErr(err, rowlock.ErrLost)
		s.WantErr(l.DoTx(s.Context(), never), rowlock.ErrFenced) // which its handle knows now
		s.OK(next.Unlock(s.Context()))
		s.WantErr(next.DoTx(s.Context(), never), rowlock.ErrUnlocked)
		s.WantErr(next.DoTx(s.Context(), nil), rowlock.ErrConfig)
		var missing context.Context
		s.WantErr(next.DoTx(missing, never), rowlock.ErrConfig)
	})
}

// Its own transaction keeps the row locked: an Unlock that waited for it would wait for itself.
func TestAnUnlockWithinTheSectionDoesNotWait(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		l := s.Take(c, "k")
		s.OK(l.DoTx(s.Context(), func(ctx context.Context, tx *sql.Tx) error {
			s.WantErr(l.Unlock(ctx), rowlock.ErrUnknown)
			_, err := tx.Exec(`UPDATE ` + table + ` SET n = 7 WHERE id = 1`) // ctx has ended with the lock
			return err
		}))
		if n := ledger(s, table); n != 7 {
			s.Errorf("n is %d, want 7", n)
		}
		s.Eventually("the key is free", func() bool {
			next, err := c.TryLock(s.Context(), "k")
			if err == nil {
				s.OK(next.Unlock(s.Context()))
			}
			return err == nil
		})
	})
}

func TestSectionsOfOneLockLoseNoUpdate(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table := s.Ledger()
		ls, err := s.Client().LockAll(s.Context(), []string{"a", "b"})
		s.OK(err)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 5 {
					if err := ls.DoTx(s.Context(), add(table)); err != nil {
						s.Error(err)
					}
				}
			})
		}
		all.Wait()
		s.OK(ls.Unlock(s.Context()))
		if n := ledger(s, table); n != 20 {
			s.Errorf("n is %d, want 20", n)
		}
	})
}

// For the race detector: a Downgrade that changes nothing writes what the section's end reads.
func TestADowngradeBesideASection(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, l := s.Ledger(), s.Take(s.Client(), "k")
		ended, end := context.WithCancel(s.Context())
		end()
		var beside sync.WaitGroup
		s.OK(l.DoTx(s.Context(), func(ctx context.Context, tx *sql.Tx) error {
			first := make(chan struct{})
			beside.Go(func() {
				for i := range 100 {
					s.WantErr(l.Downgrade(ended), context.Canceled)
					if i == 0 {
						close(first)
					}
				}
			})
			<-first
			return add(table)(ctx, tx)
		}))
		beside.Wait()
		s.OK(l.Unlock(s.Context()))
	})
}

// A statement that ends with the lock says no more than that its ctx was canceled.
func TestASectionThatEndsWithItsLockSaysSo(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		l := s.Take(c, "k", rowlock.MaxHold(100*time.Millisecond))
		err := l.DoTx(s.Context(), func(ctx context.Context, tx *sql.Tx) error {
			<-ctx.Done()
			return add(table)(ctx, tx)
		})
		s.WantErr(err, rowlock.ErrFenced)
		s.WantErr(err, rowlock.ErrMaxHold)
		if n := ledger(s, table); n != 0 {
			s.Errorf("n is %d, want 0", n)
		}
	})
}
