package clienttest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
)

// What ends a lock's context is made when it is first asked for, which may be after the end.
func TestAContextThatIsAskedForLateHasEnded(t *testing.T) {
	for name, end := range map[string]struct {
		by    func(t *testing.T, l *rowlock.Lock)
		cause error
	}{
		"by Unlock": {func(t *testing.T, l *rowlock.Lock) { _ = l.Unlock(t.Context()) }, rowlock.ErrUnlocked},
		"by MaxHold": {func(*testing.T, *rowlock.Lock) {
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}, rowlock.ErrMaxHold},
	} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				l := Take(t, c, "k", rowlock.MaxHold(time.Minute))
				end.by(t, l)
				select {
				case <-l.Context().Done():
				default:
					t.Error("its context is open")
				}
				WantIs(t, "its cause", context.Cause(l.Context()), end.cause)
			})
		})
	}
}

// The context of the call that got the lock ends, has a deadline, and has values. The lock's has
// only the values.
func TestALocksContextHasNoEndButItsOwn(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		l, err := c.Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if end, ok := l.Context().Deadline(); ok {
			t.Errorf("it has the deadline %v", end)
		}
		if err := l.Context().Err(); err != nil {
			t.Errorf("it has ended with %v", err)
		}
		if got := l.Context().Value(key{}); got != "value" {
			t.Errorf("its value is %v", got)
		}
		if _, ok := l.Context().Deadline(); ok {
			t.Error("it has a deadline once it was asked for")
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Whichever comes first of the end and the first question, the context ends.
func TestAContextThatIsAskedForWhileItsLockEndsDoesEnd(t *testing.T) {
	c := Client(t, NewScript(), nil)
	for range 300 {
		l := Take(t, c, "k")
		var both sync.WaitGroup
		var cause error
		both.Go(func() {
			<-l.Context().Done()
			cause = context.Cause(l.Context())
		})
		both.Go(func() { _ = l.Unlock(t.Context()) })
		both.Wait()
		WantIs(t, "its cause", cause, rowlock.ErrUnlocked)
	}
}

// A job that is given a ctx and no Lock must fence the lock that it runs under, or none.
func TestACtxCarriesTheLockThatWasTakenLast(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		carries := func(what string, ctx context.Context, want *rowlock.Lock) {
			t.Helper()
			if got, ok := rowlock.FromContext(ctx); got != want || ok != (want != nil) {
				t.Errorf("%s carries %v, %v, want %v", what, got, ok, want)
			}
		}
		carries("a ctx without a lock", t.Context(), nil)
		err := c.Do(t.Context(), "outer", func(ctx context.Context, outer *rowlock.Lock) error {
			carries("Do's ctx", ctx, outer)
			carries("what is made of it", context.WithoutCancel(ctx), outer)
			inner, err := c.Lock(ctx, "inner")
			if err != nil {
				t.Fatal(err)
			}
			defer inner.Unlock(ctx)
			carries("the inner lock's own ctx", inner.Context(), nil)
			within, cancel := inner.Within(ctx)
			defer cancel()
			carries("the ctx within the inner lock", within, inner)
			both, err := c.LockAll(ctx, []string{"a", "b"})
			if err != nil {
				t.Fatal(err)
			}
			defer both.Unlock(ctx)
			carries("the ctx of several locks", both.Context(), nil)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhatRunsWithinALockEndsWithIt(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k", rowlock.MaxHold(time.Minute))
		lasting, end := l.Within(t.Context())
		defer end()
		short, cancel := l.Within(t.Context())
		cancel()
		WantIs(t, "the cause after cancel", context.Cause(short), context.Canceled)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		WantIs(t, "the cause after the lock's end", context.Cause(lasting), rowlock.ErrMaxHold)
	})
}
