package clienttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// endings are the ends of a lock that its holder did not ask for. Each is over within 3 s, and
// leaves the lease in the store.
var endings = map[string]struct {
	opt   rowlock.Option
	cause error
}{
	"MaxHold": {rowlock.MaxHold(time.Second), rowlock.ErrMaxHold},
	"MaxIdle": {rowlock.MaxIdle(time.Second), rowlock.ErrIdle},
	"loss":    {rowlock.TTL(3 * time.Second), rowlock.ErrLost},
}

// mute extends each lease by an hour, and does not say so.
func mute(s *Script) {
	s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		for i := range reqs {
			reqs[i].TTL = time.Hour
		}
		_, _ = s.Store.Renew(ctx, reqs)
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// Every end of a lock gives its lease to one place. None leaves the key locked for a TTL.
func TestTheLeaseOfALockThatHasEndedIsReleased(t *testing.T) {
	for name, end := range endings {
		for _, closes := range []bool{false, true} {
			for _, uncertain := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, Close %t, unknown %t", name, closes, uncertain), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := NewScript()
						mute(s)
						var late func()
						s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
							late = func() { _, _ = s.Store.Acquire(context.Background(), reqs) }
							answers, err := s.Store.Acquire(ctx, reqs)
							answers[0].Unknown = uncertain
							return answers, err
						}
						c := long(t, s)
						l := Take(t, c, "k", end.opt)
						<-l.Context().Done()
						WantIs(t, "cause", context.Cause(l.Context()), end.cause)
						if !IsHeld(t, s, "k") {
							t.Fatal("the lease has gone already: the test shows nothing")
						}
						if closes {
							WantIs(t, "Close", c.Close())
						}
						WantIs(t, "Unlock", l.Unlock(t.Context()), end.cause)
						wantFree(t, s, "after Unlock")
						if uncertain && !closes { // Close asks the store to settle, and this one cannot
							late()
							time.Sleep(time.Second)
							wantFree(t, s, "after a copy of the request")
						}
						synctest.Wait() // for a round of the cleaners that is due now
						_, _, releases := s.Calls()
						WantIs(t, "a second Unlock", l.Unlock(t.Context()), end.cause)
						if _, _, again := s.Calls(); again != releases {
							t.Errorf("a second Unlock has released %d times", again-releases)
						}
					})
				})
			}
		}
	}
}

// The garbage collector finds the handle after the lock has ended.
func TestALockThatEndedAndWasForgottenIsReleased(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewScript()
			mute(s)
			var told []error
			cfg := &rowlock.Config{TTL: time.Hour}
			cfg.Reaper.Off = true
			cfg.Hooks.Lost = func(_ context.Context, _ string, _ rowlock.Token, cause error) { told = append(told, cause) }
			c := Client(t, s, cfg)
			func() {
				l := unkept(t, c, "k", end.opt)
				<-l.Context().Done()
				runtime.KeepAlive(l)
			}()
			for began := time.Now(); IsHeld(t, s, "k"); runtime.GC() {
				if time.Since(began) > time.Minute {
					t.Fatal("the key is held a minute after its lock was forgotten")
				}
			}
			WantIs(t, "Close", c.Close())
			if n := c.Stats(); n.Held != 0 || n.Lost != 1 || n.Released != 0 || n.Leaks != 0 {
				t.Errorf("%+v", n)
			}
			if len(told) != 1 || !errors.Is(told[0], end.cause) {
				t.Errorf("Lost was told %v", told)
			}
		})
	}
}

// A handle ends by its own Unlock, the first one as any other. The lock goes on for the others.
func TestTheFirstOfSeveralHandlesEndsByItsOwnUnlock(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		first := Take(t, c, "k", rowlock.MaxIdle(TTL))
		second, err := c.Lock(first.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		third, err := c.Lock(second.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		WantIs(t, "Unlock", first.Unlock(t.Context()))
		WantIs(t, "its context", context.Cause(first.Context()), rowlock.ErrUnlocked)
		WantIs(t, "its Progress", first.Progress(), rowlock.ErrUnlocked)
		WantIs(t, "its Downgrade", first.Downgrade(t.Context()), rowlock.ErrUnlocked)
		WantIs(t, "its Fence", first.FenceIn(t.Context(), new(idleTx)), rowlock.ErrUnlocked)
		WantIs(t, "its UnlockTx", first.UnlockIn(t.Context(), new(idleTx)), rowlock.ErrUnlocked)
		WantIs(t, "a second Unlock", first.Unlock(t.Context()), rowlock.ErrUnlocked)
		WantAlive(t, second)
		WantAlive(t, third)
		if _, err := c.TryRLock(t.Context(), "k"); !errors.Is(err, rowlock.ErrHeld) {
			t.Errorf("a reader beside it: %v", err)
		}
		fourth, err := c.Lock(third.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock by another handle's context", err)
		for _, l := range []*rowlock.Lock{second, third} {
			Unlock(t, l)
			WantIs(t, "its context", context.Cause(l.Context()), rowlock.ErrUnlocked)
		}
		WantAlive(t, fourth)
		began := time.Now()
		WantEnd(t, fourth, began, TTL, rowlock.ErrIdle) // the first handle's Progress was none
		WantIs(t, "the first handle", context.Cause(first.Context()), rowlock.ErrUnlocked)
		WantIs(t, "Unlock", fourth.Unlock(t.Context()), rowlock.ErrIdle)
		wantFree(t, s, "after the last Unlock")
	})
}

func TestEveryHandleEndsWithTheLock(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		first := Take(t, c, "k", rowlock.MaxHold(time.Minute))
		all := []*rowlock.Lock{first}
		for range 3 {
			l, err := c.Lock(first.Context(), "k", rowlock.Reentrant())
			WantIs(t, "Lock", err)
			all = append(all, l)
		}
		<-first.Context().Done()
		synctest.Wait()
		for i, l := range all {
			WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrMaxHold)
			WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
			if held := IsHeld(t, s, "k"); held != (i < len(all)-1) {
				t.Errorf("after %d of %d handles: held %t", i+1, len(all), held)
			}
		}
	})
}

// idleTx is a transaction in which nothing is to be run.
type idleTx struct{ lease.Runner }
