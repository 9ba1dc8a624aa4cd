package rowlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
)

func TestAllIsOneCallEachWay(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.TakeAll(t, c, "c", "a", "b", "a")
		if got := l.Keys(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("Keys: %q", got)
		}
		for _, key := range l.Keys() {
			one := l.Lock(key)
			if r := clienttest.Record(t, s, key); one.Key() != key || one.Token() != r.Token || !r.Held ||
				l.Deadline().After(one.Deadline()) {
				t.Errorf("%q: token %d, deadline %v; the row is %+v", key, one.Token(), one.Deadline(), r)
			}
		}
		if l.Lock("d") != nil || l.Lock("") != nil {
			t.Error("there is a lock on what was not asked for")
		}
		time.Sleep(3 * clienttest.TTL) // they are renewed like any
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
		clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		clienttest.WantIs(t, "cause of one", context.Cause(l.Lock("b").Context()), rowlock.ErrUnlocked)
		acquires, _, releases := s.Calls()
		if len(s.AcquireAlls) != 1 || acquires != 0 || releases != 3 ||
			s.Releases[0].At != s.Releases[2].At {
			t.Errorf("%d calls for all, %d for one, %d released", len(s.AcquireAlls), acquires, releases)
		}
		clienttest.WantHolds(t, s, "")
		clienttest.WantIs(t, "a second Unlock", l.Unlock(ctx), rowlock.ErrUnlocked)
	})
}

func TestWhatCannotBeLockedTogetherIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
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
		if len(s.AcquireAlls) > 0 {
			t.Errorf("asked %d times", len(s.AcquireAlls))
		}
		clienttest.UnlockAll(t, clienttest.TakeAll(t, c, many[1:]...))
	})
}

func TestALoserOfAllSeesEveryHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		var contended []string
		cfg := &rowlock.Config{
			Hooks: rowlock.Hooks{
				Contended: func(_ context.Context, key string, _ *rowlock.HeldError) {
					contended = append(contended, key)
				},
			},
		}
		cfg.Reaper.Off = true
		c := clienttest.Client(t, s, cfg)
		clienttest.Another(t, s.Store, "b", clienttest.TTL)
		clienttest.Another(t, s.Store, "d", clienttest.TTL)
		_, err := c.TryLockAll(t.Context(), []string{"d", "c", "b", "a"})
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Key != "b" || held.Note != "another" ||
			held.Remaining != clienttest.TTL || !strings.Contains(err.Error(), `"d" is held`) {
			t.Errorf("got %v", err)
		}
		clienttest.WantHolds(t, s, "b d")
		if !slices.Equal(contended, []string{"b", "d"}) {
			t.Errorf("Contended was called for %q", contended)
		}
	})
}

// LockAll has none of its keys while it waits, and moves from one key that is held to the next.
func TestLockAllHoldsNothingWhileItWaits(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		b, d := clienttest.Take(t, c, "b"), clienttest.Take(t, c, "d")
		waiting := clienttest.WaitAll(t, t.Context(), c, []string{"a", "b", "c", "d"})
		clienttest.WantHolds(t, s, "b d")
		clienttest.UnlockAll(t, clienttest.TakeAll(t, c, "a", "c"))
		clienttest.Unlock(t, b)
		synctest.Wait()
		clienttest.WantHolds(t, s, "d")
		b = clienttest.Take(t, c, "b")
		clienttest.Unlock(t, d)
		synctest.Wait()
		clienttest.WantHolds(t, s, "b")
		freed := time.Now()
		clienttest.Unlock(t, b)
		got := <-waiting
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if !time.Now().Equal(freed) || len(s.HandOvers) > 0 {
			t.Errorf("%v after the last release, with %d hand-overs", time.Since(freed), len(s.HandOvers))
		}
		clienttest.WantHolds(t, s, "a b c d")
		clienttest.UnlockAll(t, got.Locks)
	})
}

func TestLockAllTakesOverFromADeadHolder(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		began := time.Now()
		clienttest.Another(t, s.Store, "b", clienttest.TTL)
		l, err := c.LockAll(t.Context(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began) - clienttest.TTL; late > 5*time.Millisecond {
			t.Errorf("%v after it expired", late)
		}
		clienttest.UnlockAll(t, l)
	})
}

func TestLockAllEndsWithItsContextAndWithTheClient(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.LockAll(ctx, []string{"a", "b"})
		clienttest.WantIs(t, "LockAll", err, rowlock.ErrHeld, context.DeadlineExceeded)
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Key != "b" {
			t.Errorf("got %v", err)
		}
		_, err = c.LockAll(ctx, []string{"a", "b"})
		clienttest.WantIs(t, "LockAll with a context that is over", err, context.DeadlineExceeded)
		next := clienttest.WaitIn(t, t.Context(), c, "b") // a call that has left blocks no other
		freed := time.Now()
		clienttest.Unlock(t, l)
		got := <-next
		if l = got.Lock; got.Err != nil || !time.Now().Equal(freed) {
			t.Fatalf("%v later: %v", time.Since(freed), got.Err)
		}
		waiting := clienttest.WaitAll(t, t.Context(), c, []string{"a", "b"})
		others := clienttest.TakeAll(t, c, "c", "d")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		clienttest.WantIs(t, "LockAll", (<-waiting).Err, rowlock.ErrClosed)
		clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		synctest.Wait()
		clienttest.WantIs(t, "cause of all", context.Cause(others.Context()), rowlock.ErrUnlocked)
		clienttest.WantIs(t, "Unlock", others.Unlock(t.Context()), rowlock.ErrUnlocked)
		clienttest.WantHolds(t, s, "")
		_, err = c.TryLockAll(t.Context(), []string{"a"})
		clienttest.WantIs(t, "TryLockAll", err, rowlock.ErrClosed)
	})
}

// The loss of one ends the context of all. Unlock says which was lost, and frees the rest.
func TestTheLossOfOneEndsAll(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.TakeAll(t, c, "a", "b", "c")
		s.Expire("b")
		other := clienttest.Another(t, s.Store, "b", time.Hour)
		<-l.Context().Done()
		clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrLost)
		clienttest.WantAlive(t, l.Lock("a"))
		clienttest.WantHolds(t, s, "a b c")
		err := l.Unlock(t.Context())
		clienttest.WantIs(t, "Unlock", err, rowlock.ErrLost)
		if !strings.Contains(err.Error(), `"b"`) || strings.Contains(err.Error(), `"a"`) {
			t.Errorf("Unlock: %v", err)
		}
		clienttest.WantHolds(t, s, "b")
		if r := clienttest.Record(t, s, "b"); r.Lease != other {
			t.Errorf("the row of the one that was lost is %+v", r)
		}
	})
}

func TestOneOfAllCanBeReleasedBeforeTheRest(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.TakeAll(t, c, "a", "b", "c")
		clienttest.Unlock(t, l.Lock("b"))
		clienttest.WantHolds(t, s, "a c")
		<-l.Context().Done()
		clienttest.UnlockAll(t, l)
		clienttest.WantHolds(t, s, "")
	})
}

func TestAllAreFencedAndReleasedInOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewFencingStore()
		c := clienttest.Client(t, s, nil)
		l := clienttest.TakeAll(t, c, "c", "a", "b")
		tx := s.Begin()
		if err := l.FenceIn(t.Context(), tx); err != nil ||
			!slices.Equal(tx.Fenced, []string{"a", "b", "c"}) {
			t.Fatalf("fenced %q, %v", tx.Fenced, err)
		}
		tx.End()
		tx = s.Begin()
		if err := l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		clienttest.WantHolds(t, s, "a b c")
		tx.Commit()
		clienttest.WantHolds(t, s, "")
		clienttest.UnlockAll(t, l)

		l = clienttest.TakeAll(t, c, "a", "b", "c")
		s.Expire("b")
		clienttest.Another(t, s.Store, "b", time.Hour)
		tx = s.Begin()
		err := l.FenceIn(t.Context(), tx)
		clienttest.WantIs(t, "FenceIn", err, rowlock.ErrFenced, rowlock.ErrLost)
		if !strings.Contains(err.Error(), `"b"`) {
			t.Errorf("FenceIn: %v", err)
		}
		tx.End()
		clienttest.WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		clienttest.WantIs(t, "Fence with no transaction", l.Fence(t.Context(), nil), rowlock.ErrConfig)
	})
}
