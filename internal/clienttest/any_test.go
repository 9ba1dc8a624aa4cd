package clienttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

var letters = strings.Split("a b c d", " ")

// heldKeys are those of a, b, c and d that are held.
func heldKeys(t *testing.T, s lease.Store) (keys string) {
	t.Helper()
	for _, key := range letters {
		if IsHeld(t, s, key) {
			keys += key
		}
	}
	return keys
}

func TestTryLockAnyTakesAFreeKeyAndNoOther(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		Another(t, s.Store, "b", TTL)
		got := ""
		for range 3 {
			l, err := c.TryLockAny(t.Context(), []string{"d", "a", "b", "c", "a"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Unlock(t.Context()) }()
			got += l.Key()
			if held := heldKeys(t, s); len(held) != len(got)+1 {
				t.Fatalf("%q were granted, and %q are held", got, held)
			}
		}
		_, err := c.TryLockAny(t.Context(), letters)
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Key != "a" || strings.Count(err.Error(), "held") < 4 {
			t.Errorf("refused with %v, want a HeldError for each key in key order", err)
		}
	})
}

func TestAnyOfTooFewOrTooManyOrBadKeysIsRefused(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		many := make([]string, 513)
		for i := range many {
			many[i] = fmt.Sprint(i)
		}
		for _, keys := range [][]string{nil, {}, many} {
			_, err := c.LockAny(t.Context(), keys)
			WantIs(t, fmt.Sprint(len(keys)), err, rowlock.ErrConfig)
		}
		_, err := c.LockAny(t.Context(), []string{"a", ""})
		WantIs(t, "an empty key", err, rowlock.ErrInvalidKey)
		if rows, _ := s.Inspect(t.Context(), lease.Filter{}); len(rows) > 0 {
			t.Errorf("rows were made: %+v", rows)
		}
		l, err := c.LockAny(t.Context(), many[1:])
		if err != nil {
			t.Fatal(err)
		}
		Unlock(t, l)
	})
}

// waitAny starts a LockAny that must wait.
func waitAny(t *testing.T, ctx context.Context, c *rowlock.Client, keys []string,
	opts ...rowlock.Option,
) <-chan Waited {
	t.Helper()
	done := make(chan Waited, 1)
	go func() {
		l, err := c.LockAny(ctx, keys, opts...)
		done <- Waited{l, err}
	}()
	synctest.Wait()
	if len(done) > 0 {
		t.Fatalf("did not wait: %+v", <-done)
	}
	return done
}

func TestLockAnyGetsTheFirstKeyThatIsReleased(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		for _, key := range letters {
			l := Take(t, c, key)
			for _, other := range letters {
				if other != key {
					Another(t, s.Store, other, TTL)
				}
			}
			waiting := waitAny(t, t.Context(), c, letters)
			if n := c.Stats().Waiting; n != 1 {
				t.Errorf("%d calls wait, want 1", n)
			}
			began := time.Now()
			Unlock(t, l)
			w := <-waiting
			if w.Err != nil || w.Lock.Key() != key || time.Since(began) > 0 {
				t.Fatalf("after %v got %+v, want %q", time.Since(began), w, key)
			}
			Unlock(t, w.Lock)
			synctest.Wait()
			time.Sleep(2 * TTL) // the others expire
		}
	})
}

// Another process releases two keys between two polls. One call takes one of them, and the wake-up
// for the other goes to its next waiter.
func TestAWakeUpThatIsNotNeededGoesToTheNext(t *testing.T) {
	for range 20 {
		Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
			a, b := Another(t, s.Store, "a", time.Hour), Another(t, s.Store, "b", time.Hour)
			either := waitAny(t, t.Context(), c, []string{"a", "b"})
			waiting := map[string]<-chan Waited{"a": Wait(t, c, "a"), "b": Wait(t, c, "b")}
			time.Sleep(time.Minute) // polls are as rare as they get
			if _, err := s.Store.Release(t.Context(), []lease.Lease{a, b}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w := <-either
			if w.Err != nil {
				t.Fatal(w.Err)
			}
			other := map[string]string{"a": "b", "b": "a"}[w.Lock.Key()]
			got := <-waiting[other]
			if got.Err != nil || time.Since(began) > 300*time.Millisecond {
				t.Fatalf("%q was free for %v: %v", other, time.Since(began), got.Err)
			}
			Unlock(t, got.Lock)
			Unlock(t, w.Lock)
			Unlock(t, (<-waiting[w.Lock.Key()]).Lock)
		})
	}
}

// A call that is canceled when it was woken for a key wakes the next.
func TestACanceledCallForAnyLeavesItsWakeUpToTheNext(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		a, b := Take(t, c, "a"), Take(t, c, "b")
		ctx, cancel := context.WithCancel(t.Context())
		first := waitAny(t, ctx, c, []string{"a", "b"})
		second := Wait(t, c, "b")
		s.OnHandOver = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			s.OnHandOver = nil
			out, err := s.Store.HandOver(ctx, items)
			cancel()
			synctest.Wait()
			return out, err
		}
		Unlock(t, b)
		WantIs(t, "the first", (<-first).Err, rowlock.ErrHeld, context.Canceled)
		w := <-second
		if w.Err != nil {
			t.Fatal(w.Err)
		}
		Unlock(t, w.Lock)
		Unlock(t, a)
		if held := heldKeys(t, s); held != "" {
			t.Errorf("%q stay held without a holder", held)
		}
	})
}

// A hand-over that is refused takes nothing from the call: another key that was released meanwhile
// is still found.
func TestAKeyReleasedDuringAHandOverOfAnotherIsNotMissed(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		a, b := Take(t, c, "a"), Take(t, c, "b")
		waiting := waitAny(t, t.Context(), c, []string{"a", "b"})
		s.OnHandOver = func(_ context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			s.OnHandOver = nil
			_, _ = s.Store.Release(context.Background(), []lease.Lease{items[0].From})
			Another(t, s.Store, "a", time.Hour)
			Unlock(t, b)
			return make([]lease.Acquired, len(items)), nil
		}
		began := time.Now()
		WantIs(t, "Unlock", a.Unlock(t.Context()), rowlock.ErrLost)
		w := <-waiting
		if w.Err != nil || w.Lock.Key() != "b" || time.Since(began) > 0 {
			t.Fatalf("after %v got %+v, want b", time.Since(began), w)
		}
		Unlock(t, w.Lock)
	})
}

func TestAnAnyOfUnknownOutcomeIsCleanedUp(t *testing.T) {
	for name, executed := range map[string]bool{"executed": true, "not executed": false} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				s.OnAcquireAny = func(
					ctx context.Context, reqs []lease.AcquireRequest, n int,
				) ([]lease.Acquired, error) {
					if executed {
						_, _ = s.Store.AcquireAny(ctx, reqs, n)
					}
					return nil, fmt.Errorf("%w: connection lost", lease.ErrUnknown)
				}
				_, err := c.LockAny(t.Context(), letters)
				WantIs(t, "LockAny", err, rowlock.ErrUnknown)
				time.Sleep(10 * time.Second)
				if held := heldKeys(t, s); held != "" {
					t.Errorf("%q stay held without a holder", held)
				}
			})
		})
	}
}

// A grant that is unknown may come with others, by a late copy of the request: they are released.
func TestNoSecondKeyIsKeptOfAUnknownAny(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		s.OnAcquireAny = func(
			ctx context.Context, reqs []lease.AcquireRequest, n int,
		) ([]lease.Acquired, error) {
			answers, err := s.Store.AcquireAny(ctx, reqs[1:], n)
			_, _ = s.Store.Acquire(ctx, reqs[:1]) // the late copy
			answers = append([]lease.Acquired{{}}, answers...)
			for i := range answers {
				answers[i].Unknown = true
			}
			return answers, err
		}
		l, err := c.LockAny(t.Context(), letters)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if held := heldKeys(t, s); held != l.Key() {
			t.Errorf("%q are held, want %q alone", held, l.Key())
		}
		Unlock(t, l)
	})
}

// A store that cannot do it in one statement is asked key by key, and never keeps a second one.
func TestLockAnyOnAStoreThatCannotAsksKeyByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		c := Client(t, Bare{s}, nil)
		for i := range letters {
			l, err := c.TryLockAny(t.Context(), letters)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Unlock(context.Background()) })
			if held := heldKeys(t, s); len(held) != i+1 {
				t.Fatalf("%d calls hold %q", i+1, held)
			}
		}
		if len(s.AcquireAnys) > 0 || len(s.Releases) > 0 {
			t.Errorf("%d calls of AcquireAny, %d releases, want none", len(s.AcquireAnys), len(s.Releases))
		}
		_, err := c.TryLockAny(t.Context(), letters)
		WantIs(t, "TryLockAny", err, rowlock.ErrHeld)
	})
}

func TestAnyOfKeysThatItsContextHolds(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		a := Take(t, c, "a")
		for range 20 {
			l, err := c.LockAny(a.Context(), []string{"a", "b"})
			if err != nil || l.Key() != "b" {
				t.Fatalf("got %v, %v, want b", l, err)
			}
			Unlock(t, l)
		}
		_, err := c.LockAny(a.Context(), []string{"a"})
		WantIs(t, "all are held above", err, rowlock.ErrDeadlock)
		l, err := c.LockAny(a.Context(), []string{"a", "b"}, rowlock.Reentrant())
		if err != nil || l.Key() != "a" || l.Token() != a.Token() {
			t.Fatalf("Reentrant: got %v, %v", l, err)
		}
		Unlock(t, l)
		WantAlive(t, a)
		_, err = c.LockAny(a.Context(), []string{"a"}, rowlock.Reentrant(), rowlock.TTL(time.Hour))
		WantIs(t, "another TTL", err, rowlock.ErrConfig)
		Unlock(t, a)
	})
}

func TestAnyOfKeysThatItsContextSharesIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := readers(t, &rowlock.Config{})
		shared := share(t, c, "a")
		for _, opts := range [][]rowlock.Option{nil, {rowlock.Reentrant()}} {
			l, err := c.TryLockAny(shared.Context(), []string{"a", "b"}, opts...)
			if err != nil || l.Key() != "b" {
				t.Fatalf("got %v, %v, want b", l, err)
			}
			Unlock(t, l)
			_, err = c.LockAny(shared.Context(), []string{"a"}, opts...)
			WantIs(t, "all are shared above", err, rowlock.ErrUpgrade)
		}
		drop(t, shared)
	})
}

// One holds x and waits for y or z; the other holds y and waits for x. The release of z ends that,
// so that it is no deadlock.
func TestAWaitForAnyIsNoPartOfACycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		cfg := &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}}
		cfg.Hooks.Suspected = func(_ context.Context, by rowlock.Suspicion) { t.Errorf("suspected: %+v", by) }
		one, two := Client(t, s, cfg), Client(t, s, nil)
		x, y := Take(t, one, "x"), Take(t, two, "y")
		z := Another(t, s, "z", time.Hour)
		either := waitAny(t, x.Context(), one, []string{"y", "z"})
		back := WaitIn(t, y.Context(), two, "x")
		time.Sleep(time.Minute)
		if len(either)+len(back) > 0 {
			t.Fatal("a call ended, though nothing was released")
		}
		if _, err := s.Release(t.Context(), []lease.Lease{z}); err != nil {
			t.Fatal(err)
		}
		w := <-either
		if w.Err != nil || w.Lock.Key() != "z" {
			t.Fatalf("got %+v", w)
		}
		Unlock(t, w.Lock)
		Unlock(t, x)
		Unlock(t, (<-back).Lock)
		Unlock(t, y)
	})
}

func TestACallForAnyEndsWithItsContextAndItsClient(t *testing.T) {
	for _, fair := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New()
			c, err := rowlock.New(s, &rowlock.Config{Fair: fair, Reaper: rowlock.ReaperConfig{Off: true}})
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range letters {
				Another(t, s, key, time.Hour)
			}
			shown := 0
			show := rowlock.OnWait(func(w rowlock.Waiting) {
				if shown++; w.Holder != "another" {
					t.Errorf("shown %+v", w)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = c.LockAny(ctx, letters, show)
			WantIs(t, "LockAny", err, context.DeadlineExceeded, rowlock.ErrHeld)
			if shown == 0 {
				t.Error("OnWait was not called")
			}
			waiting := waitAny(t, t.Context(), c, letters)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			WantIs(t, "after Close", (<-waiting).Err, rowlock.ErrClosed)
		})
	}
}

// In fair clients a call for any key stands in the order of each.
func TestFairCallsForAnyAreServedInOrder(t *testing.T) {
	Fairly(t, 3, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		a, b := Take(t, clients[0], "a"), Take(t, clients[0], "b")
		var waiting []<-chan Waited
		for i := range 6 {
			keys := [][]string{{"a", "b"}, {"b", "a"}, {"a"}}[i%3]
			waiting = append(waiting, waitAny(t, t.Context(), clients[i%3], keys))
			time.Sleep(time.Second)
		}
		Unlock(t, b)
		first := served(t, waiting[0], "b")
		Unlock(t, a)
		second := served(t, waiting[1], "a")
		Unlock(t, first) // the third wants a alone
		third := served(t, waiting[3], "b")
		Unlock(t, second)
		Unlock(t, served(t, waiting[2], "a"))
		fifth := served(t, waiting[4], "a")
		Unlock(t, fifth)
		Unlock(t, served(t, waiting[5], "a"))
		Unlock(t, third)
		synctest.Wait()
		for _, key := range []string{"a", "b"} {
			l, err := clients[1].TryLock(t.Context(), key) // refused if a ticket were left
			if err != nil {
				t.Fatalf("%q: %v", key, err)
			}
			Unlock(t, l)
		}
	})
}

// served returns the lock on key, which a waiter must get within half a second.
func served(t *testing.T, waiting <-chan Waited, key string) *rowlock.Lock {
	t.Helper()
	select {
	case w := <-waiting:
		if w.Err != nil || w.Lock.Key() != key {
			t.Fatalf("got %+v, want %q", w, key)
		}
		return w.Lock
	case <-time.After(500 * time.Millisecond):
		t.Fatalf("%q was not granted", key)
	}
	return nil
}

// Two keys are passed to one fair call at the same moment. It keeps one, and the next waiter has
// the other at once.
func TestAFairCallForAnyPassesOnASecondKey(t *testing.T) {
	Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		locks, err := clients[0].TryLockAll(t.Context(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		either := waitAny(t, t.Context(), clients[1], []string{"a", "b"})
		a, b := Wait(t, clients[1], "a"), Wait(t, clients[1], "b")
		time.Sleep(time.Second)
		UnlockAll(t, locks)
		w := <-either
		if w.Err != nil {
			t.Fatal(w.Err)
		}
		other, rest, key := b, a, "b"
		if w.Lock.Key() == "b" {
			other, rest, key = a, b, "a"
		}
		Unlock(t, served(t, other, key))
		Unlock(t, w.Lock)
		Unlock(t, served(t, rest, w.Lock.Key()))
	})
}

// Waiters that share all keys cost one poll each round, and a release one statement.
func TestAHerdThatWaitsForAnyCostsOneStatementARelease(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		const waiters = 64
		var keys []string
		var held []*rowlock.Lock
		for i := range 8 {
			keys = append(keys, fmt.Sprint("slot", i))
			held = append(held, Take(t, c, keys[i]))
		}
		granted := make(chan *rowlock.Lock, waiters)
		for range waiters {
			go func() {
				l, err := c.LockAny(t.Context(), keys)
				if err != nil {
					t.Error(err)
				}
				granted <- l
			}()
		}
		synctest.Wait()
		bids, handed := len(s.AcquireAnys), len(s.HandOvers)
		if bids > 1 {
			t.Errorf("%d waiters made %d bids, want 1", waiters, bids)
		}
		time.Sleep(time.Minute)
		polls := s.Polled()
		time.Sleep(time.Minute)
		if more := s.Polled() - polls; more > 4*60+8 {
			t.Errorf("%d polls a minute, want four a second at most", more)
		}
		last := make(map[string]lease.Token)
		for _, l := range held {
			last[l.Key()] = l.Token()
			Unlock(t, l)
		}
		for range waiters {
			l := <-granted
			if l.Token() <= last[l.Key()] {
				t.Errorf("token %d of %q after %d", l.Token(), l.Key(), last[l.Key()])
			}
			last[l.Key()] = l.Token()
			Unlock(t, l)
		}
		more, handed := len(s.AcquireAnys)-bids, len(s.HandOvers)-handed
		t.Logf("%d waiters: %d hand-overs, %d bids", waiters, handed, more)
		if handed+more > waiters+waiters/8 || handed < waiters/2 {
			t.Errorf("%d waiters took %d hand-overs and %d bids, want about one for each", waiters, handed, more)
		}
		if n := c.Stats().Waiting; n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// A key is released while the call bids. It is not handed to the call, which would have two.
func TestAKeyIsNotHandedToACallForAnyThatBids(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		a, b := Another(t, s.Store, "a", time.Hour), Take(t, c, "b")
		waiting := waitAny(t, t.Context(), c, []string{"a", "b"})
		next := Wait(t, c, "b")
		s.OnAcquireAny = func(
			ctx context.Context, reqs []lease.AcquireRequest, n int,
		) ([]lease.Acquired, error) {
			s.OnAcquireAny = nil
			answers, err := s.Store.AcquireAny(ctx, reqs, n)
			Unlock(t, b) // the answer is under way
			return answers, err
		}
		if _, err := s.Store.Release(t.Context(), []lease.Lease{a}); err != nil {
			t.Fatal(err)
		}
		w := <-waiting
		if w.Err != nil || w.Lock.Key() != "a" {
			t.Fatalf("got %+v, want a", w)
		}
		Unlock(t, served(t, next, "b"))
		Unlock(t, w.Lock)
		if held := heldKeys(t, s); held != "" {
			t.Errorf("%q stay held without a holder", held)
		}
	})
}

// A call for any does not bid for a key that an earlier call waits for: it is told of the release
// of one key, and not yet that the other is free too.
func TestACallForAnyOvertakesNoEarlierCall(t *testing.T) {
	for range 20 {
		Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
			a, b := Take(t, Client(t, s, nil), "a"), Another(t, s.Store, "b", time.Hour)
			earlier := Wait(t, c, "b")
			either := waitAny(t, t.Context(), c, []string{"a", "b"})
			time.Sleep(time.Minute) // polls are as rare as they get
			if _, err := s.Store.Release(t.Context(), []lease.Lease{b}); err != nil {
				t.Fatal(err)
			}
			Unlock(t, a)
			first, second := served(t, either, "a"), served(t, earlier, "b")
			Unlock(t, first)
			Unlock(t, second)
		})
	}
}
