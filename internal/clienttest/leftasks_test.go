package clienttest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// askedLeft counts how often a store is asked whether other processes wait, and for how many keys
// it wakes one.
type askedLeft struct {
	*FencingStore
	asks, wakes int
}

func (s *askedLeft) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	s.asks++
	return s.Store.Awaited(ctx, process, keys)
}

func (s *askedLeft) Announce(ctx context.Context, keys []string) error {
	s.wakes += len(keys)
	return s.Store.Announce(ctx, keys)
}

const (
	leftMin = 10 * time.Millisecond // PollMin
	moment  = 4 * leftMin           // for which a look is believed
)

// leftAsks runs f with two processes of a store.
func leftAsks(t *testing.T, f func(t *testing.T, s *askedLeft, a, b *rowlock.Client)) {
	synctest.Test(t, func(t *testing.T) {
		s := &askedLeft{FencingStore: NewFencingStore()}
		client := func() *rowlock.Client {
			return Client(t, s, &rowlock.Config{
				PollMin: leftMin, PollMax: time.Minute, Reaper: rowlock.ReaperConfig{Off: true},
			})
		}
		f(t, s, client(), client())
	})
}

// leaves ends a lock as DoTx does, in a transaction that is committed.
func (s *askedLeft) leaves(t *testing.T, l *rowlock.Lock) {
	t.Helper()
	tx := s.Begin()
	WantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx))
	tx.Commit()
	Unlock(t, l)
}

// No answer of a transaction's says whether other processes wait, and each section would ask.
func TestSectionsAskForOtherProcessesOnceInAMoment(t *testing.T) {
	leftAsks(t, func(t *testing.T, s *askedLeft, a, _ *rowlock.Client) {
		for n := 1; n <= 3; n++ {
			for range 10 {
				s.leaves(t, Take(t, a, "k"))
			}
			if s.asks != n || s.wakes != 0 {
				t.Errorf("%d questions and %d wakes after %d moments", s.asks, s.wakes, n)
			}
			time.Sleep(moment)
		}
	})
}

// A waiter of another process that has come since is not woken, and loses no more than its next
// poll, whenever it has come: it does not pause for as long as one that waits for an old hold.
func TestAWaiterThatIsNotAskedForPollsSoon(t *testing.T) {
	for after := time.Duration(0); after < moment; after += time.Millisecond {
		leftAsks(t, func(t *testing.T, s *askedLeft, a, b *rowlock.Client) {
			s.leaves(t, Take(t, a, "k"))
			l := Take(t, a, "k")
			time.Sleep(after)
			waiting := Wait(t, b, "k")
			time.Sleep(moment - after - time.Microsecond)
			released := time.Now()
			if s.leaves(t, l); s.asks != 1 || s.wakes != 0 {
				t.Errorf("%s: %d questions and %d wakes", after, s.asks, s.wakes)
			}
			w := <-waiting
			if took := time.Since(released); w.Err != nil || took > leftMin*11/10 {
				t.Errorf("%s: granted %s after the release: %v", after, took, w.Err)
			}
		})
	}
}

// A process that uses a key all the time finds a waiter when the moment is over.
func TestSectionsInARowFindAWaiterAfterAMoment(t *testing.T) {
	leftAsks(t, func(t *testing.T, s *askedLeft, a, b *rowlock.Client) {
		s.leaves(t, Take(t, a, "k"))
		l, began := Take(t, a, "k"), time.Now()
		waiting := Wait(t, b, "k")
		for err := error(nil); err == nil; l, err = a.TryLock(t.Context(), "k") {
			time.Sleep(leftMin / 2)
			s.leaves(t, l)
			time.Sleep(leftMin / 4) // or no other process would have a chance without a slice's end
		}
		w := <-waiting
		if took := time.Since(began); w.Err != nil || took > moment+2*leftMin {
			t.Errorf("granted after %s: %v", took, w.Err)
		}
	})
}
