package rowlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
)

func TestTransactionsNeedAStoreThatTakesPart(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "k")
		tx := clienttest.NewFencingStore().Begin()
		clienttest.WantIs(t, "Fence", l.FenceIn(t.Context(), tx), rowlock.ErrUnsupported)
		clienttest.WantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx), rowlock.ErrUnsupported)
		clienttest.WantIs(t, "Fence(nil)", l.Fence(t.Context(), nil), rowlock.ErrConfig)
		clienttest.WantIs(t, "UnlockTx(nil)", l.UnlockTx(t.Context(), nil), rowlock.ErrConfig)
		clienttest.WantAlive(t, l)
	})
}

// fenced runs a test with a client on a store that takes part in transactions.
func fenced(t *testing.T, f func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewFencingStore()
		f(t, clienttest.Client(t, s, nil), s)
	})
}

func TestFencedLockOutlivesItsDeadline(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
		l := clienttest.Take(t, c, "k")
		tx := s.Begin()
		if err := l.FenceIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * clienttest.TTL) // a renewal finds the row busy
		clienttest.WantAlive(t, l)
		tx.End()
		ended := time.Now()
		<-l.Context().Done() // the lease has expired meanwhile, and a dead lease is not revived
		clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrLost)
		if took := time.Since(ended); took > clienttest.Margin {
			t.Errorf("ended %v after the transaction", took)
		}
	})
}

func TestShortFencesCostNothing(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
		l := clienttest.Take(t, c, "k")
		for range 100 {
			tx := s.Begin()
			if err := l.FenceIn(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(clienttest.TTL / 3)
			tx.End()
			time.Sleep(clienttest.TTL / 6)
		}
		clienttest.WantAlive(t, l)
	})
}

func TestFenceOfALockThatIsOver(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
		tx := s.Begin()
		unlocked := clienttest.Take(t, c, "unlocked")
		if err := unlocked.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		clienttest.WantIs(t, "Fence after Unlock", unlocked.FenceIn(t.Context(), tx), rowlock.ErrUnlocked)
		clienttest.WantIs(t, "UnlockTx after Unlock", unlocked.UnlockIn(t.Context(), tx),
			rowlock.ErrUnlocked)

		lost := clienttest.Take(t, c, "lost", rowlock.NoRenew())
		held := clienttest.Take(t, c, "held too long", rowlock.MaxHold(time.Second))
		<-lost.Context().Done()
		clienttest.WantIs(t, "Fence after loss", lost.FenceIn(t.Context(), tx), rowlock.ErrFenced,
			rowlock.ErrLost)
		clienttest.WantIs(t, "UnlockTx after loss", lost.UnlockIn(t.Context(), tx), rowlock.ErrFenced,
			rowlock.ErrLost)
		clienttest.WantIs(t, "Fence after MaxHold", held.FenceIn(t.Context(), tx), rowlock.ErrFenced,
			rowlock.ErrMaxHold)

		stolen := clienttest.Take(t, c, "stolen")
		s.Expire("stolen")
		clienttest.Another(t, s, "stolen", clienttest.TTL)
		clienttest.WantIs(t, "Fence after a takeover", stolen.FenceIn(t.Context(), tx), rowlock.ErrFenced)
		if len(tx.Fenced) != 0 {
			t.Errorf("the transaction has locked %q", tx.Fenced)
		}
	})
}

// The row itself names another owner: the holder learns it at once, not from the watchdog.
func TestRefusedFenceEndsTheLock(t *testing.T) {
	for name, refused := range map[string]func(context.Context, *rowlock.Lock, *clienttest.Transaction) error{
		"Fence": func(ctx context.Context, l *rowlock.Lock, tx *clienttest.Transaction) error {
			return l.FenceIn(ctx, tx)
		},
		"UnlockTx": func(ctx context.Context, l *rowlock.Lock, tx *clienttest.Transaction) error {
			return l.UnlockIn(ctx, tx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
				l := clienttest.Take(t, c, "k")
				s.Expire("k")
				other := clienttest.Another(t, s, "k", clienttest.TTL)
				clienttest.WantIs(t, name, refused(t.Context(), l, s.Begin()), rowlock.ErrFenced,
					rowlock.ErrLost)
				clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrLost)
				clienttest.WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
				if r := clienttest.Record(t, s, "k"); r.Lease != other {
					t.Errorf("the row is %+v, want %+v", r, other)
				}
			})
		})
	}
}

// A lock that its own transaction released fences no more, but it was not lost.
func TestFenceAfterUnlockTxIsNoLoss(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
		l := clienttest.Take(t, c, "k")
		tx := s.Begin()
		if err := l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
		err := l.FenceIn(t.Context(), s.Begin())
		clienttest.WantIs(t, "Fence", err, rowlock.ErrFenced)
		if cause := context.Cause(l.Context()); errors.Is(err, rowlock.ErrLost) ||
			errors.Is(cause, rowlock.ErrLost) {
			t.Errorf("Fence: %v; cause: %v", err, cause)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
	})
}

func TestUnlockTxThatIsCommitted(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
		l := clienttest.Take(t, c, "k")
		tx := s.Begin()
		if err := l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		clienttest.WantAlive(t, l) // until the commit it is held
		tx.Commit()
		next := clienttest.Take(t, c, "k")
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock after the commit: %v", err)
		}
		clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		time.Sleep(10 * clienttest.TTL)
		clienttest.WantAlive(t, next)
	})
}

// The watchdog finds out, without a call of Unlock.
func TestUnlockTxThatIsCommittedEndsTheContext(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
		l := clienttest.Take(t, c, "k")
		tx := s.Begin()
		if err := l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		tx.Commit()
		committed := time.Now()
		<-l.Context().Done()
		clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		if took := time.Since(committed); took > clienttest.Margin/2 {
			t.Errorf("ended %v after the commit", took)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock, as defer does: %v", err)
		}
	})
}

func TestUnlockTxThatIsRolledBack(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
		l, stolen := clienttest.Take(t, c, "k"), clienttest.Take(t, c, "stolen")
		tx := s.Begin()
		for _, l := range []*rowlock.Lock{l, stolen} {
			if err := l.UnlockIn(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		tx.End()
		time.Sleep(10 * clienttest.TTL)
		clienttest.WantAlive(t, l)
		clienttest.WantAlive(t, stolen)
		if err := l.Unlock(t.Context()); err != nil || clienttest.IsHeld(t, s, "k") {
			t.Errorf("Unlock: %v; held: %t", err, clienttest.IsHeld(t, s, "k"))
		}
		s.Expire("stolen") // the transaction of long ago is no excuse
		clienttest.Another(t, s, "stolen", clienttest.TTL)
		clienttest.WantIs(t, "Unlock", stolen.Unlock(t.Context()), rowlock.ErrLost)
	})
}
