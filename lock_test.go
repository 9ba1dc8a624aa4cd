package rowlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

func TestUnlockFreesTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if isHeld(t, s, "k") {
			t.Error("the key is held")
		}
		wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		_, renewals, _ := s.asked()
		time.Sleep(10 * ttl)
		if _, more, _ := s.asked(); more != renewals {
			t.Errorf("%d renewals after Unlock", more-renewals)
		}
	})
}

func TestSecondUnlockDoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		next := take(t, c, "k")
		_, _, before := s.asked()
		wantIs(t, "the second Unlock", l.Unlock(t.Context()), rowlock.ErrUnlocked)
		if _, _, after := s.asked(); after != before {
			t.Errorf("the second Unlock released %d times", after-before)
		}
		time.Sleep(10 * ttl)
		alive(t, next)
	})
}

// As in defer l.Unlock(ctx), when the request that ctx is of has died.
func TestUnlockWorksWithACancelledContext(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := c.TryLock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
		if isHeld(t, s, "k") {
			t.Error("the key is held")
		}
	})
}

func TestUnlockAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.renew = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) { return nil, errDown }
		c := client(t, s, nil)
		began := time.Now()
		l := take(t, c, "k")
		endsAt(t, l, began, trust, rowlock.ErrLost)
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		wantIs(t, "the second Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
	})
}

// The lease was taken over, and the watchdog has not yet noticed.
func TestUnlockNoticesTheLoss(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		s.Expire("k")
		other := another(t, s, "k", ttl)
		alive(t, l)
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		if r := record(t, s, "k"); r.Lease != other {
			t.Errorf("Unlock of a lost lock left %+v, want %+v", r, other)
		}
	})
}

func TestUnlockAfterMaxHoldFreesTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		began := time.Now()
		l := take(t, c, "k", rowlock.MaxHold(5*ttl))
		endsAt(t, l, began, 5*ttl, rowlock.ErrMaxHold)
		if !isHeld(t, s, "k") {
			t.Error("freed while its holder may still be at work")
		}
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
		if isHeld(t, s, "k") {
			t.Error("the holder says it is done, and the key is held")
		}
		wantIs(t, "the second Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
	})
}

func TestLockPastMaxHoldExpires(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		take(t, c, "k", rowlock.MaxHold(5*ttl))
		began := time.Now()
		if _, err := c.Lock(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 5*ttl || took > 6*ttl+time.Second {
			t.Errorf("a stuck worker's lock passed on after %v", took)
		}
	})
}

// The database cannot be reached: Unlock says so in time, and the client goes on in the background.
func TestUnlockThatFailsIsGoneOnWith(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", lease.ErrUnknown, ctx.Err())
	}
	for name, c := range map[string]struct {
		fail func(context.Context) ([]lease.Released, error)
		want error
		took time.Duration
	}{
		"the call fails": {func(context.Context) ([]lease.Released, error) { return nil, errDown }, rowlock.ErrUnknown, 0},
		"the item fails": {func(context.Context) ([]lease.Released, error) { return []lease.Released{{Err: errDown}}, nil }, rowlock.ErrUnknown, 0},
		"it hangs":       {func(ctx context.Context) ([]lease.Released, error) { return nil, hang(ctx) }, rowlock.ErrUnknown, 2 * time.Second},
		"no answer":      {func(context.Context) ([]lease.Released, error) { return nil, nil }, rowlock.ErrUnknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				back := time.Now().Add(3 * time.Second)
				s.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
					if time.Now().Before(back) {
						return c.fail(ctx)
					}
					return s.Store.Release(ctx, leases)
				}
				locks := client(t, s, nil)
				l := take(t, locks, "k")
				began := time.Now()
				wantIs(t, "Unlock", l.Unlock(t.Context()), c.want)
				if took := time.Since(began); took < c.took || took > c.took*5/4 {
					t.Errorf("took %v, want %v, or up to a quarter more", took, c.took)
				}
				wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
				time.Sleep(5 * time.Second)
				if isHeld(t, s, "k") {
					t.Error("the key is held although the store is back")
				}
			})
		})
	}
}

// A copy of the acquire may still come when the lock was given back already.
func TestUnlockOfADoubtfulGrantCleansUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			time.AfterFunc(3*time.Second, func() { _, _ = s.Store.Acquire(context.Background(), reqs) })
			answers, err := s.Store.Acquire(ctx, reqs)
			answers[0].Doubtful = true
			return answers, err
		}
		c := client(t, s, nil)
		if err := take(t, c, "k").Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(4 * time.Second)
		if r := record(t, s, "k"); r.Token != 2 || r.Held {
			t.Errorf("after the copy came: %+v", r)
		}
	})
}

func TestNoRenewEndsByItself(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		began := time.Now()
		l := take(t, c, "k", rowlock.NoRenew())
		if got := l.Deadline().Sub(began); got != trust {
			t.Errorf("the deadline is after %v, want %v", got, trust)
		}
		endsAt(t, l, began, trust, rowlock.ErrLost)
		if !isHeld(t, s, "k") {
			t.Error("the holder was told late: the lease has expired in the store")
		}
		time.Sleep(margin)
		if _, renewals, _ := s.asked(); renewals != 0 || isHeld(t, s, "k") {
			t.Errorf("%d renewals; held: %t", renewals, isHeld(t, s, "k"))
		}
	})
}

func TestTransactionsNeedAStoreThatTakesPart(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		tx := newFencing().begin()
		wantIs(t, "Fence", l.FenceIn(t.Context(), tx), rowlock.ErrUnsupported)
		wantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx), rowlock.ErrUnsupported)
		wantIs(t, "Fence(nil)", l.Fence(t.Context(), nil), rowlock.ErrConfig)
		wantIs(t, "UnlockTx(nil)", l.UnlockTx(t.Context(), nil), rowlock.ErrConfig)
		alive(t, l)
	})
}

// fenced runs a test with a client on a store that takes part in transactions.
func fenced(t *testing.T, f func(t *testing.T, c *rowlock.Client, s *fencing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newFencing()
		f(t, client(t, s, nil), s)
	})
}

func TestFencedLockOutlivesItsDeadline(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *fencing) {
		l := take(t, c, "k")
		tx := s.begin()
		if err := l.FenceIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * ttl) // a renewal finds the row busy
		alive(t, l)
		tx.end()
		ended := time.Now()
		<-l.Context().Done() // the lease has expired meanwhile, and a dead lease is not revived
		wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrLost)
		if took := time.Since(ended); took > margin {
			t.Errorf("told %v after the transaction", took)
		}
	})
}

func TestShortFencesCostNothing(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *fencing) {
		l := take(t, c, "k")
		for range 100 {
			tx := s.begin()
			if err := l.FenceIn(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(ttl / 3)
			tx.end()
			time.Sleep(ttl / 6)
		}
		alive(t, l)
	})
}

func TestFenceOfALockThatIsOver(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *fencing) {
		tx := s.begin()
		unlocked := take(t, c, "unlocked")
		if err := unlocked.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "Fence after Unlock", unlocked.FenceIn(t.Context(), tx), rowlock.ErrUnlocked)
		wantIs(t, "UnlockTx after Unlock", unlocked.UnlockIn(t.Context(), tx), rowlock.ErrUnlocked)

		lost := take(t, c, "lost", rowlock.NoRenew())
		held := take(t, c, "held too long", rowlock.MaxHold(time.Second))
		<-lost.Context().Done()
		wantIs(t, "Fence after loss", lost.FenceIn(t.Context(), tx), rowlock.ErrFenced, rowlock.ErrLost)
		wantIs(t, "UnlockTx after loss", lost.UnlockIn(t.Context(), tx), rowlock.ErrFenced, rowlock.ErrLost)
		wantIs(t, "Fence after MaxHold", held.FenceIn(t.Context(), tx), rowlock.ErrFenced, rowlock.ErrMaxHold)

		stolen := take(t, c, "stolen")
		s.Expire("stolen")
		another(t, s, "stolen", ttl)
		wantIs(t, "Fence after a takeover", stolen.FenceIn(t.Context(), tx), rowlock.ErrFenced)
		if len(tx.fenced) != 0 {
			t.Errorf("the transaction has locked %q", tx.fenced)
		}
	})
}

// The row itself has said that the lease is another's: the holder need not wait for the watchdog to hear it.
func TestRefusedFenceEndsTheLock(t *testing.T) {
	for name, refused := range map[string]func(context.Context, *rowlock.Lock, *transaction) error{
		"Fence":    func(ctx context.Context, l *rowlock.Lock, tx *transaction) error { return l.FenceIn(ctx, tx) },
		"UnlockTx": func(ctx context.Context, l *rowlock.Lock, tx *transaction) error { return l.UnlockIn(ctx, tx) },
	} {
		t.Run(name, func(t *testing.T) {
			fenced(t, func(t *testing.T, c *rowlock.Client, s *fencing) {
				l := take(t, c, "k")
				s.Expire("k")
				other := another(t, s, "k", ttl)
				wantIs(t, name, refused(t.Context(), l, s.begin()), rowlock.ErrFenced, rowlock.ErrLost)
				wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrLost)
				wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
				if r := record(t, s, "k"); r.Lease != other {
					t.Errorf("the row is %+v, want %+v", r, other)
				}
			})
		})
	}
}

// A lock that its own transaction gave back fences no more, but it was not lost.
func TestFenceAfterUnlockTxIsNoLoss(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *fencing) {
		l := take(t, c, "k")
		tx := s.begin()
		if err := l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		tx.commit()
		err := l.FenceIn(t.Context(), s.begin())
		wantIs(t, "Fence", err, rowlock.ErrFenced)
		if cause := context.Cause(l.Context()); errors.Is(err, rowlock.ErrLost) || errors.Is(cause, rowlock.ErrLost) {
			t.Errorf("Fence: %v; cause: %v", err, cause)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
	})
}

func TestUnlockTxThatIsCommitted(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *fencing) {
		l := take(t, c, "k")
		tx := s.begin()
		if err := l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		alive(t, l) // until the commit it is held
		tx.commit()
		next := take(t, c, "k")
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock after the commit: %v", err)
		}
		wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		time.Sleep(10 * ttl)
		alive(t, next)
	})
}

// Nobody calls Unlock; the watchdog finds out.
func TestUnlockTxThatIsCommittedEndsTheContext(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *fencing) {
		l := take(t, c, "k")
		tx := s.begin()
		if err := l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		tx.commit()
		committed := time.Now()
		<-l.Context().Done()
		wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		if took := time.Since(committed); took > margin/2 {
			t.Errorf("told %v after the commit", took)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock, as defer does: %v", err)
		}
	})
}

func TestUnlockTxThatIsRolledBack(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *fencing) {
		l, stolen := take(t, c, "k"), take(t, c, "stolen")
		tx := s.begin()
		for _, l := range []*rowlock.Lock{l, stolen} {
			if err := l.UnlockIn(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		tx.end()
		time.Sleep(10 * ttl)
		alive(t, l)
		alive(t, stolen)
		if err := l.Unlock(t.Context()); err != nil || isHeld(t, s, "k") {
			t.Errorf("Unlock: %v; held: %t", err, isHeld(t, s, "k"))
		}
		s.Expire("stolen") // the transaction of long ago is no excuse
		another(t, s, "stolen", ttl)
		wantIs(t, "Unlock", stolen.Unlock(t.Context()), rowlock.ErrLost)
	})
}

// For the race detector: one of many gives the lock back, the others are told that it was, even while it is being done.
func TestUnlocksAtOnce(t *testing.T) {
	c := client(t, newScript(), nil)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for g := range 4 { // keeps the watchdog and the client at work, so that ending a lock takes a moment
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = take(t, c, fmt.Sprint("busy ", g)).Unlock(context.Background())
				}
			}
		})
	}
	for range 300 {
		l := take(t, c, "k")
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() { errs <- l.Unlock(context.Background()) }()
		}
		done := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				done++
			} else {
				wantIs(t, "Unlock", err, rowlock.ErrUnlocked)
			}
		}
		if done != 1 {
			t.Errorf("%d calls say they have given it back", done)
		}
	}
	close(stop)
	busy.Wait()
}
