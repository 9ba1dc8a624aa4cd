package clienttest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
)

// leftWith runs f with a lock of which the transaction of UnlockTx has ended as end says.
func leftWith(t *testing.T, end func(*Transaction), f func(t *testing.T, c, ops *rowlock.Client, l *rowlock.Lock, s *FencingStore)) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair %t", fair), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewFencingStore()
				c, ops := Client(t, s, &rowlock.Config{Fair: fair, TTL: TTL}), Client(t, s, &rowlock.Config{Fair: fair})
				l, tx := Take(t, c, "k"), s.Begin()
				WantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx))
				end(tx)
				f(t, c, ops, l, s)
			})
		})
	}
}

// wantEnds waits first: an end that a renewal finds is counted after the contexts have ended, and
// Unlock does not wait for it.
func wantEnds(t *testing.T, c *rowlock.Client, lost, released int64) {
	t.Helper()
	synctest.Wait()
	if n := c.Stats(); n.Lost != lost || n.Released != released {
		t.Errorf("%d lost and %d released, want %d and %d", n.Lost, n.Released, lost, released)
	}
}

func TestAForcedReleaseAfterARolledBackUnlockTxIsALoss(t *testing.T) {
	leftWith(t, (*Transaction).End, func(t *testing.T, c, ops *rowlock.Client, l *rowlock.Lock, _ *FencingStore) {
		take(t, ops, "k", byHand)
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		wantEnds(t, c, 1, 0)
	})
	t.Run("and the key has a holder", func(t *testing.T) {
		leftWith(t, (*Transaction).End, func(t *testing.T, c, ops *rowlock.Client, l *rowlock.Lock, _ *FencingStore) {
			take(t, ops, "k", byHand)
			next := Take(t, ops, "k")
			WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
			wantEnds(t, c, 1, 0)
			Unlock(t, next)
		})
	})
	t.Run("as a renewal finds", func(t *testing.T) {
		leftWith(t, (*Transaction).End, func(t *testing.T, c, ops *rowlock.Client, l *rowlock.Lock, _ *FencingStore) {
			take(t, ops, "k", byHand)
			<-l.Context().Done()
			WantIs(t, "the end of the lock", context.Cause(l.Context()), rowlock.ErrLost)
			WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
			wantEnds(t, c, 1, 0)
		})
	})
}

// The records of an operator are those of other holders.
func TestAForcedReleaseAfterACommittedUnlockTxIsNoLoss(t *testing.T) {
	for name, by := range map[string]func(l *rowlock.Lock){
		"Unlock":    func(*rowlock.Lock) {},
		"a renewal": func(l *rowlock.Lock) { <-l.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			leftWith(t, (*Transaction).Commit, func(t *testing.T, c, ops *rowlock.Client, l *rowlock.Lock, _ *FencingStore) {
				Take(t, ops, "k")
				take(t, ops, "k", byHand)
				by(l)
				Unlock(t, l)
				WantIs(t, "the end of the lock", context.Cause(l.Context()), rowlock.ErrUnlocked)
				wantEnds(t, c, 0, 1)
			})
		})
	}
}

// What the row says suffices: free by the lease's own token, or held by the next.
func TestUnlockAfterACommittedUnlockTxSendsOneRead(t *testing.T) {
	for name, between := range map[string]func(*testing.T, *rowlock.Client){
		"free": func(*testing.T, *rowlock.Client) {},
		"held": func(t *testing.T, ops *rowlock.Client) { Take(t, ops, "k") },
	} {
		t.Run(name, func(t *testing.T) {
			leftWith(t, (*Transaction).Commit, func(t *testing.T, c, ops *rowlock.Client, l *rowlock.Lock, s *FencingStore) {
				between(t, ops)
				_, _, before := s.Calls()
				looks := s.Polled()
				Unlock(t, l)
				if _, _, after := s.Calls(); after != before || s.Polled() != looks+1 {
					t.Errorf("%d releases and %d reads, want 0 and 1", after-before, s.Polled()-looks)
				}
			})
		})
	}
}

// The transaction that Fence has waited for is known to have rolled back, before any renewal.
func TestAFenceAfterARolledBackUnlockTxShowsThatTheLockIsHeld(t *testing.T) {
	leftWith(t, (*Transaction).End, func(t *testing.T, c, ops *rowlock.Client, l *rowlock.Lock, s *FencingStore) {
		time.Sleep(time.Millisecond)
		tx := s.Begin()
		WantIs(t, "Fence", l.FenceIn(t.Context(), tx))
		tx.End()
		s.Expire("k")
		Another(t, s, "k", TTL)
		WantIs(t, "Fence", l.FenceIn(t.Context(), s.Begin()), rowlock.ErrLost)
		wantEnds(t, c, 1, 0)
	})
}

// The context of the first handle has ended with its Unlock, and that of the hold with it.
func TestAForcedReleaseIsALossForAHandleThatOutlivesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewFencingStore()
		c, ops := Client(t, s, &rowlock.Config{TTL: TTL}), Client(t, s, nil)
		first := Take(t, c, "k")
		l, err := c.Lock(first.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		Unlock(t, first)
		tx := s.Begin()
		WantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx))
		tx.End()
		take(t, ops, "k", byHand)
		<-l.Context().Done()
		WantIs(t, "the end of the lock", context.Cause(l.Context()), rowlock.ErrLost)
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		wantEnds(t, c, 1, 0)
	})
}
