package clienttest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// A hand-over is refused when the lease is lost. It is also refused when the key has no token
// left for another grant: then the lease was not lost, and is released.
func TestAHandOverThatIsRefusedIsNoLoss(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		waiting := Wait(t, c, "k")
		s.OnHandOver = func(_ context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			return make([]lease.Acquired, len(items)), nil
		}
		began := time.Now()
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
		if w := <-waiting; w.Err != nil || time.Since(began) > time.Second {
			t.Errorf("the waiter got it after %v: %v", time.Since(began), w.Err)
		}
	})
}

func TestAHandOverOfALostLeaseSaysSo(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		waiting := Wait(t, c, "k")
		r := Record(t, s, "k")
		if _, err := s.Store.Release(t.Context(), []lease.Lease{r.Lease}); err != nil {
			t.Fatal(err)
		}
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		if w := <-waiting; w.Err != nil {
			t.Error(w.Err)
		}
	})
}

// A try without an answer has handed the lease over, and the next owner's lease was over before the
// store could be asked again. The row then names neither, and the holder has lost nothing.
func TestAHandOverThatAnUnansweredTryHasMadeIsNoLoss(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		waiting := Wait(t, c, "k")
		s.OnHandOver = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			s.OnHandOver = nil
			made, err := s.Store.HandOver(ctx, items)
			if err != nil || !made[0].Granted {
				t.Fatal(made, err)
			}
			next := lease.Lease{Key: "k", Owner: items[0].To.Owner, Token: made[0].Token}
			if _, err := s.Store.Release(ctx, []lease.Lease{next}); err != nil {
				t.Fatal(err)
			}
			return []lease.Acquired{{Unknown: true}}, nil
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
		if w := <-waiting; w.Err != nil {
			t.Error(w.Err)
		}
	})
}

// silent is a store that can be made to stop answering.
type silent struct {
	*Script
	hangs atomic.Bool
}

func (s *silent) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Script.Release(ctx, leases)
}

func (s *silent) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Awaited(ctx, process, keys)
}

func (s *silent) Announce(ctx context.Context, keys []string) error {
	if s.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Store.Announce(ctx, keys)
}

// When the hand-over budget is spent, waiters of other processes get a chance. Unlock does not
// ask for them at a store that could not even release.
func TestUnlockPastTheHandOverBudgetWaitsOnceForAStoreThatHangs(t *testing.T) {
	for name, unlock := range map[string]func(context.Context, *rowlock.Client) (unlocker, error){
		"one": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
			return c.TryLock(ctx, "k")
		},
		"all": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
			return c.TryLockAll(ctx, []string{"j", "k"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &silent{Script: NewScript()}
				c := Client(t, s,
					&rowlock.Config{
						TTL: TTL, HandOvers: 1, Logger: slog.New(slog.DiscardHandler),
						Reaper: rowlock.ReaperConfig{Off: true},
					})
				l, err := unlock(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				waiting := Wait(t, c, "k")
				time.Sleep(time.Second)
				s.hangs.Store(true)
				began := time.Now()
				WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
				if took := time.Since(began); took > 2500*time.Millisecond {
					t.Errorf("took %v", took)
				}
				s.hangs.Store(false)
				if w := <-waiting; w.Err != nil || time.Since(began) > 2500*time.Millisecond+TTL/2 {
					t.Errorf("the waiter got it after %v: %v", time.Since(began), w.Err)
				}
			})
		})
	}
}
