package clienttest

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// wantUnpassed fails the test if a transaction has handed a key over, and ends what has waited.
func wantUnpassed(t *testing.T, s *SectionStore, waiting <-chan Waited) {
	t.Helper()
	Unlock(t, mustWin(t, <-waiting))
	if n := s.Passed(); len(n) > 0 {
		t.Errorf("handed over: %+v", n)
	}
}

// One statement has one row to give away, and the release of the others is another one.
func TestASectionOfSeveralKeysHandsNothingOver(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		begin := func(context.Context, *sql.TxOptions) (lease.Transaction, error) {
			return &sectionTx{Transaction: s.Begin(), s: s}, nil
		}
		var waiting, other <-chan Waited
		WantIs(t, "DoAllTx", c.DoTxIn(t.Context(), []string{"k", "l"}, begin, func(context.Context) error {
			waiting, other = Wait(t, c, "k"), Wait(t, c, "l")
			return nil
		}))
		Unlock(t, mustWin(t, <-other))
		wantUnpassed(t, s, waiting)
		wantFreed(t, s, c)
	})
}

// A handle of a Reentrant call says by its own Unlock when the key is free.
func TestASectionWithAnotherHandleHandsNothingOver(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		var waiting <-chan Waited
		var inner *rowlock.Lock
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(ctx context.Context) (err error) {
			waiting = Wait(t, c, "k")
			inner, err = c.TryLock(ctx, "k", rowlock.Reentrant())
			return err
		}))
		_ = inner.Unlock(t.Context())
		wantUnpassed(t, s, waiting)
		wantFreed(t, s, c)
	})
}

// A copy of the request that has granted the key may come after the COMMIT, and is cleaned up by
// the holder's own release.
func TestASectionOfAnUncertainGrantHandsNothingOver(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.Acquire(ctx, reqs)
			answers[0].Unknown = answers[0].Granted
			return answers, err
		}
		var waiting <-chan Waited
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
			waiting = Wait(t, c, "k")
			return nil
		}))
		wantUnpassed(t, s, waiting)
		wantFreed(t, s, c)
	})
}

// A caller whose request is under way could be granted the key twice, under two owners.
func TestACallerThatAsksIsNotHandedTheKey(t *testing.T) {
	passes(t, func(t *testing.T, c *rowlock.Client, s *SectionStore) {
		var waiting <-chan Waited
		var blocks atomic.Bool
		asks, answer := make(chan struct{}, 1), make(chan struct{})
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if blocks.Load() {
				asks <- struct{}{}
				<-answer
			}
			return s.Store.Acquire(ctx, reqs)
		}
		WantIs(t, "DoTx", s.DoTx(t.Context(), c, "k", func(context.Context) error {
			waiting = Wait(t, c, "k")
			blocks.Store(true)
			<-asks // its next poll
			return nil
		}))
		blocks.Store(false)
		close(answer)
		wantUnpassed(t, s, waiting)
		wantFreed(t, s, c)
	})
}
