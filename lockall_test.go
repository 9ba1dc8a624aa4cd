package rowlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

func takeAll(t *testing.T, c *rowlock.Client, keys ...string) *rowlock.Locks {
	t.Helper()
	l, err := c.TryLockAll(t.Context(), keys)
	if err != nil {
		t.Fatalf("TryLockAll %q: %v", keys, err)
	}
	return l
}

// waitedAll is how a LockAll ended.
type waitedAll struct {
	l   *rowlock.Locks
	err error
}

// waitForAll starts a LockAll that must wait.
func waitForAll(t *testing.T, ctx context.Context, c *rowlock.Client, keys []string, opts ...rowlock.Option) <-chan waitedAll {
	t.Helper()
	done := make(chan waitedAll, 1)
	go func() {
		l, err := c.LockAll(ctx, keys, opts...)
		done <- waitedAll{l, err}
	}()
	synctest.Wait()
	if len(done) > 0 {
		t.Fatalf("did not wait: %+v", <-done)
	}
	return done
}

func holds(t *testing.T, s lease.Store, keys string) {
	t.Helper()
	for _, key := range strings.Split("a b c d", " ") {
		if want := strings.Contains(keys, key); isHeld(t, s, key) != want {
			t.Errorf("%q is held: %t, want %t", key, !want, want)
		}
	}
}

func TestAllIsOneCallEachWay(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := takeAll(t, c, "c", "a", "b", "a")
		if got := l.Keys(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("Keys: %q", got)
		}
		for _, key := range l.Keys() {
			one := l.Lock(key)
			if r := record(t, s, key); one.Key() != key || one.Token() != r.Token || !r.Held || l.Deadline().After(one.Deadline()) {
				t.Errorf("%q: token %d, deadline %v; the row is %+v", key, one.Token(), one.Deadline(), r)
			}
		}
		if l.Lock("d") != nil || l.Lock("") != nil {
			t.Error("there is a lock on what was not asked for")
		}
		time.Sleep(3 * ttl) // they are renewed like any
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
		wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		wantIs(t, "cause of one", context.Cause(l.Lock("b").Context()), rowlock.ErrUnlocked)
		acquires, _, releases := s.asked()
		if len(s.alls) != 1 || acquires != 0 || releases != 3 || s.releases[0].at != s.releases[2].at {
			t.Errorf("%d calls for all, %d for one, %d released", len(s.alls), acquires, releases)
		}
		holds(t, s, "")
		wantIs(t, "a second Unlock", l.Unlock(ctx), rowlock.ErrUnlocked)
	})
}

func TestWhatCannotBeLockedTogetherIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		many := make([]string, 513)
		for i := range many {
			many[i] = fmt.Sprint("k", i)
		}
		for name, tt := range map[string]struct {
			keys []string
			opts []rowlock.Option
			want error
			says string
		}{
			"none":      {nil, nil, rowlock.ErrConfig, "at least one"},
			"too many":  {many, nil, rowlock.ErrConfig, "513 keys to lock together; at most 512"},
			"empty key": {[]string{"a", "", "b"}, nil, rowlock.ErrInvalidKey, "empty"},
			"bad last":  {[]string{"a", strings.Repeat("z", 256)}, nil, rowlock.ErrInvalidKey, "256 bytes"},
			"option":    {[]string{"a"}, []rowlock.Option{rowlock.TTL(1)}, rowlock.ErrConfig, "TTL"},
		} {
			_, err1 := c.TryLockAll(t.Context(), tt.keys, tt.opts...)
			_, err2 := c.LockAll(t.Context(), tt.keys, tt.opts...)
			for _, err := range []error{err1, err2} {
				if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%s: %v, want %v that says %q", name, err, tt.want, tt.says)
				}
			}
		}
		if len(s.alls) > 0 {
			t.Errorf("asked %d times", len(s.alls))
		}
		unlockAll(t, takeAll(t, c, many[1:]...))
	})
}

func unlockAll(t *testing.T, l *rowlock.Locks) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestALoserOfAllHearsOfEveryHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		var contended []string
		cfg := &rowlock.Config{Hooks: rowlock.Hooks{Contended: func(key string, _ *rowlock.HeldError) { contended = append(contended, key) }}}
		cfg.Reaper.Off = true
		c := client(t, s, cfg)
		another(t, s.Store, "b", ttl)
		another(t, s.Store, "d", ttl)
		_, err := c.TryLockAll(t.Context(), []string{"d", "c", "b", "a"})
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Key != "b" || held.Note != "another" || held.Remaining != ttl || !strings.Contains(err.Error(), `"d" is held`) {
			t.Errorf("got %v", err)
		}
		holds(t, s, "b d")
		if !slices.Equal(contended, []string{"b", "d"}) {
			t.Errorf("Contended was called for %q", contended)
		}
	})
}

// It has none of its keys while it waits, and moves from one key that is held to the next.
func TestLockAllHoldsNothingWhileItWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		b, d := take(t, c, "b"), take(t, c, "d")
		waiting := waitForAll(t, t.Context(), c, []string{"a", "b", "c", "d"})
		holds(t, s, "b d")
		unlockAll(t, takeAll(t, c, "a", "c"))
		unlock(t, b)
		synctest.Wait()
		holds(t, s, "d")
		b = take(t, c, "b")
		unlock(t, d)
		synctest.Wait()
		holds(t, s, "b")
		freed := time.Now()
		unlock(t, b)
		got := <-waiting
		if got.err != nil {
			t.Fatal(got.err)
		}
		if !time.Now().Equal(freed) || len(s.passes) > 0 {
			t.Errorf("%v after the last key came free, with %d hand-overs", time.Since(freed), len(s.passes))
		}
		holds(t, s, "a b c d")
		unlockAll(t, got.l)
	})
}

// Whoever is next in the line is not held up by one who was called there and needs another key too.
func TestLockAllLeavesAKeyToTheNextInLineWhenAnotherIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		a, b := take(t, c, "a"), take(t, c, "b")
		all := waitForAll(t, t.Context(), c, []string{"a", "b"})
		one := waitIn(t, t.Context(), c, "a")
		freed := time.Now()
		unlock(t, a)
		got := <-one
		if got.err != nil || !time.Now().Equal(freed) {
			t.Fatalf("%v later: %v", time.Since(freed), got.err)
		}
		unlock(t, b)
		synctest.Wait()
		holds(t, s, "a")
		unlock(t, got.l)
		if got := <-all; got.err != nil {
			t.Error(got.err)
		}
	})
}

// Waiters of this process are served when a set is given back, those of others told with one hint.
func TestUnlockOfAllCallsWhoeverWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := takeAll(t, c, "a", "b", "c")
		one, all := waitIn(t, t.Context(), c, "a"), waitForAll(t, t.Context(), c, []string{"b", "c"})
		freed := time.Now()
		unlockAll(t, l)
		first, second := <-one, <-all
		if first.err != nil || second.err != nil || !time.Now().Equal(freed) {
			t.Fatalf("%v later: %v, %v", time.Since(freed), first.err, second.err)
		}
		if _, _, releases := s.asked(); releases != 3 {
			t.Errorf("%d leases were released", releases)
		}
	})
}

func TestLockAllTakesOverFromADeadHolder(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		began := time.Now()
		another(t, s.Store, "b", ttl)
		l, err := c.LockAll(t.Context(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began) - ttl; late > 5*time.Millisecond {
			t.Errorf("%v after it expired", late)
		}
		unlockAll(t, l)
	})
}

func TestLockAllEndsWithItsContextAndWithTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.LockAll(ctx, []string{"a", "b"})
		wantIs(t, "LockAll", err, rowlock.ErrHeld, context.DeadlineExceeded)
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Key != "b" {
			t.Errorf("got %v", err)
		}
		_, err = c.LockAll(ctx, []string{"a", "b"})
		wantIs(t, "LockAll with a context that is over", err, context.DeadlineExceeded)
		next := waitIn(t, t.Context(), c, "b") // who has left stands in nobody's way
		freed := time.Now()
		unlock(t, l)
		got := <-next
		if l = got.l; got.err != nil || !time.Now().Equal(freed) {
			t.Fatalf("%v later: %v", time.Since(freed), got.err)
		}
		waiting := waitForAll(t, t.Context(), c, []string{"a", "b"})
		others := takeAll(t, c, "c", "d")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wantIs(t, "LockAll", (<-waiting).err, rowlock.ErrClosed)
		wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		synctest.Wait()
		wantIs(t, "cause of all", context.Cause(others.Context()), rowlock.ErrUnlocked)
		wantIs(t, "Unlock", others.Unlock(t.Context()), rowlock.ErrUnlocked)
		holds(t, s, "")
		_, err = c.TryLockAll(t.Context(), []string{"a"})
		wantIs(t, "TryLockAll", err, rowlock.ErrClosed)
	})
}

// The loss of one ends the context of all. Unlock says which was lost, and frees the rest.
func TestTheLossOfOneEndsAll(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := takeAll(t, c, "a", "b", "c")
		s.Expire("b")
		other := another(t, s.Store, "b", time.Hour)
		<-l.Context().Done()
		wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrLost)
		alive(t, l.Lock("a"))
		holds(t, s, "a b c")
		err := l.Unlock(t.Context())
		wantIs(t, "Unlock", err, rowlock.ErrLost)
		if !strings.Contains(err.Error(), `"b"`) || strings.Contains(err.Error(), `"a"`) {
			t.Errorf("Unlock: %v", err)
		}
		holds(t, s, "b")
		if r := record(t, s, "b"); r.Lease != other {
			t.Errorf("the row of the one that was lost is %+v", r)
		}
	})
}

func TestOneOfAllCanBeGivenBackBeforeTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := takeAll(t, c, "a", "b", "c")
		unlock(t, l.Lock("b"))
		holds(t, s, "a c")
		<-l.Context().Done()
		unlockAll(t, l)
		holds(t, s, "")
	})
}

// The answer was lost. Nobody knows whether all or none was granted; a moment later none is.
func TestAllOfUnknownOutcomeAreCleanedUp(t *testing.T) {
	for name, executed := range map[string]bool{"executed": true, "not executed": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
				s.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					if executed {
						_, _ = s.Store.AcquireAll(ctx, reqs)
					}
					return nil, fmt.Errorf("%w: connection lost", lease.ErrUnknown)
				}
				_, err := c.TryLockAll(t.Context(), []string{"a", "b"})
				wantIs(t, "TryLockAll", err, rowlock.ErrUnknown)
				synctest.Wait()
				holds(t, s, "")
				if s.all = nil; executed == (record(t, s, "a").Token == 0) {
					t.Error("the script did not do what the test is about")
				}
			})
		})
	}
}

func TestAnAnswerThatCameTooLateIsNoLocks(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		s.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.AcquireAll(ctx, reqs)
			time.Sleep(trust)
			return answers, err
		}
		_, err := c.TryLockAll(t.Context(), []string{"a", "b", "c"})
		wantIs(t, "TryLockAll", err, rowlock.ErrLost)
		synctest.Wait()
		holds(t, s, "")
	})
}

// A database that fails ends the wait; one that is busy does not.
func TestLockAllWaitsForABusyDatabaseOnly(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		n := 0
		s.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if n++; n < 4 {
				return nil, lease.ErrBusy
			}
			return s.Store.AcquireAll(ctx, reqs)
		}
		l, err := c.LockAll(t.Context(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		unlockAll(t, l)
		s.all = func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) { return nil, errDown }
		_, err = c.LockAll(t.Context(), []string{"a", "b"})
		wantIs(t, "LockAll", err, errDown)
		s.all = nil
		one := take(t, c, "a")
		unlock(t, one) // nobody is left in the line
		if len(s.passes) > 0 {
			t.Errorf("handed over: %+v", s.passes)
		}
	})
}

func TestMinHoldAndMaxHoldAreOfEach(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l, err := c.TryLockAll(t.Context(), []string{"a", "b"}, rowlock.MinHold(time.Minute), rowlock.MaxHold(time.Hour), rowlock.Note("both"))
		if err != nil {
			t.Fatal(err)
		}
		if r := record(t, s, "b"); r.Note != "both" {
			t.Errorf("the note is %q", r.Note)
		}
		unlockAll(t, l)
		time.Sleep(59 * time.Second)
		holds(t, s, "a b")
		time.Sleep(time.Second)
		holds(t, s, "")
		l, err = c.TryLockAll(t.Context(), []string{"a", "b"}, rowlock.MaxHold(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrMaxHold)
		synctest.Wait()
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
		holds(t, s, "")
	})
}

// Many that were held too long are freed in one call: one for each would wait for a store that hangs as often.
func TestUnlockOfAllPastMaxHoldDoesNotWaitForEach(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		var hangs atomic.Bool
		s.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			if !hangs.Load() {
				return s.Store.Release(ctx, leases)
			}
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", rowlock.ErrUnknown, ctx.Err())
		}
		l, err := c.TryLockAll(t.Context(), []string{"a", "b", "c", "d"}, rowlock.MaxHold(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		synctest.Wait()
		hangs.Store(true)
		began := time.Now()
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		hangs.Store(false)
		time.Sleep(5 * time.Second) // and the client goes on trying
		holds(t, s, "")
	})
}

// A store that grants one by one is made to grant all or none: what was granted is given back, and whoever waits for it is called.
func TestAllNeedsNoAbilities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c, other := client(t, bare{s}, nil), client(t, bare{s}, nil)
		b := take(t, other, "b")
		_, err := c.TryLockAll(t.Context(), []string{"a", "b", "c"})
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Key != "b" {
			t.Errorf("got %v", err)
		}
		holds(t, s, "b")
		waiting := waitForAll(t, t.Context(), c, []string{"a", "b", "c"})
		unlock(t, b)
		got := <-waiting
		if got.err != nil {
			t.Fatal(got.err)
		}
		holds(t, s, "a b c")
		unlockAll(t, got.l)
		holds(t, s, "")
	})
}

// A part whose outcome is unknown is cleaned up, and the other part given back.
func TestAPartThatFailedIsNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		c := client(t, struct{ lease.Store }{s}, nil)
		s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.Acquire(ctx, reqs)
			answers[1] = lease.Acquired{Err: fmt.Errorf("%w: connection lost", lease.ErrUnknown)}
			return answers, err
		}
		_, err := c.TryLockAll(t.Context(), []string{"a", "b", "c"})
		wantIs(t, "TryLockAll", err, rowlock.ErrUnknown)
		synctest.Wait()
		holds(t, s.Store, "")
	})
}

// In a fair client a set takes its turn at each key, and keeps what it has.
func TestAllOfAFairClientAreLockedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		cfg := &rowlock.Config{Fair: true}
		cfg.Reaper.Off = true
		c := client(t, s, cfg)
		b := take(t, c, "b")
		ctx, cancel := context.WithCancel(t.Context())
		leaves := waitForAll(t, ctx, c, []string{"c", "b", "a"}, rowlock.MinHold(time.Hour))
		holds(t, s, "a b")
		cancel()
		wantIs(t, "LockAll", (<-leaves).err, rowlock.ErrHeld, context.Canceled)
		holds(t, s, "b")
		waiting := waitForAll(t, t.Context(), c, []string{"c", "b", "a"})
		late := waitIn(t, t.Context(), c, "b")
		_, err := c.TryLockAll(t.Context(), []string{"b", "c"})
		wantIs(t, "TryLockAll", err, rowlock.ErrHeld)
		unlock(t, b)
		got := <-waiting
		if got.err != nil {
			t.Fatal(got.err)
		}
		holds(t, s, "a b c")
		unlockAll(t, got.l)
		if got := <-late; got.err != nil {
			t.Error(got.err)
		}
		if len(s.alls) > 0 {
			t.Error("a fair client went past its queue")
		}
	})
}

func TestAllAreFencedAndReleasedInOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFencing()
		c := client(t, s, nil)
		l := takeAll(t, c, "c", "a", "b")
		tx := s.begin()
		if err := l.FenceIn(t.Context(), tx); err != nil || !slices.Equal(tx.fenced, []string{"a", "b", "c"}) {
			t.Fatalf("fenced %q, %v", tx.fenced, err)
		}
		tx.end()
		tx = s.begin()
		if err := l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		holds(t, s, "a b c")
		tx.commit()
		holds(t, s, "")
		unlockAll(t, l)

		l = takeAll(t, c, "a", "b", "c")
		s.Expire("b")
		another(t, s.Store, "b", time.Hour)
		tx = s.begin()
		err := l.FenceIn(t.Context(), tx)
		wantIs(t, "FenceIn", err, rowlock.ErrFenced, rowlock.ErrLost)
		if !strings.Contains(err.Error(), `"b"`) {
			t.Errorf("FenceIn: %v", err)
		}
		tx.end()
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		wantIs(t, "Fence with no transaction", l.Fence(t.Context(), nil), rowlock.ErrConfig)
	})
}
