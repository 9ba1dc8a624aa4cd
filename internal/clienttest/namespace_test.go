package clienttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// tenant returns a namespace that must be allowed.
func tenant(t *testing.T, c *rowlock.Client, name string, q rowlock.Quota) *rowlock.Client {
	t.Helper()
	n, err := c.Namespace(name, q)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantFull wants a call to be refused by a quota.
func wantFull(t *testing.T, err error, want lease.QuotaError) {
	t.Helper()
	var got *lease.QuotaError
	if !errors.As(err, &got) || *got != want || !errors.Is(err, rowlock.ErrQuota) {
		t.Errorf("got %v, want %+v", err, want)
	}
}

func TestTheKeysOfNamespacesAreTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := Client(t, s, nil)
		a, b := tenant(t, c, "a", rowlock.Quota{}), tenant(t, c, "b", rowlock.Quota{})
		inner := tenant(t, a, "b", rowlock.Quota{})
		locks := []*rowlock.Lock{Take(t, c, "k"), Take(t, a, "k"), Take(t, b, "k"), Take(t, inner, "k")}
		for i, full := range []string{"k", "a/k", "b/k", "a/b/k"} {
			if l := locks[i]; l.Key() != "k" || !IsHeld(t, s, full) {
				t.Errorf("%q is locked as %q", full, l.Key())
			}
		}
		if _, err := a.TryLock(t.Context(), "k"); !errors.Is(err, rowlock.ErrHeld) {
			t.Errorf("a second lock: %v", err)
		}
		if _, err := c.TryLock(t.Context(), "b/k"); !errors.Is(err, rowlock.ErrHeld) {
			t.Errorf("a lock of the client: %v", err)
		}
		all, err := a.LockAll(t.Context(), []string{"y", "x"})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(all.Keys(), " "); got != "x y" || all.Lock("y").Key() != "y" {
			t.Errorf("locked together: %q", got)
		}
		w := watching(t, a, "")
		time.Sleep(time.Second)
		synctest.Wait()
		w.mu.Lock()
		if got := strings.Join(w.all, ", "); len(w.all) != 4 || strings.Contains(got, "a/") {
			t.Errorf("watched: %q", got)
		}
		w.mu.Unlock()
		if err := errors.Join(all.Unlock(t.Context()), a.Close()); err != nil {
			t.Fatal(err)
		}
		for _, l := range locks {
			WantAlive(t, l) // Close of a namespace ends none
			Unlock(t, l)
		}
	})
}

// The client may have a key that is a namespace's name.
func TestANamespaceHasNoKeyWithoutAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, memstore.New(), nil)
		n := tenant(t, c, "billing", rowlock.Quota{})
		l := Take(t, c, "billing/")
		_, err := n.ForceRelease(t.Context(), "", rowlock.Force{Reason: "stuck"})
		WantIs(t, "a forced release", err, rowlock.ErrInvalidKey)
		all, err := n.Inspect(t.Context(), lease.Filter{Keys: []string{""}})
		if err != nil || len(all) > 0 {
			t.Errorf("listed %v, %v", all, err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("the client's lock: %v", err)
		}
	})
}

func TestANamespaceAtItsLimitHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, memstore.New(), nil)
		a, b := tenant(t, c, "a", rowlock.Quota{Held: 3}), tenant(t, c, "b", rowlock.Quota{Held: 3})
		one := Take(t, a, "1")
		_, err := a.TryLockAll(t.Context(), []string{"2", "3", "4"})
		wantFull(t, err, lease.QuotaError{Namespace: "a", What: "held", Limit: 3, Asked: 3})
		two := Take(t, a, "2")
		_, err = a.TryLock(t.Context(), "1") // held, and does not count afterwards
		WantIs(t, "a key that is held", err, rowlock.ErrHeld)
		three, err := a.Lock(t.Context(), "3", rowlock.MaxHold(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Lock(t.Context(), "4")
		wantFull(t, err, lease.QuotaError{Namespace: "a", What: "held", Limit: 3, Asked: 1})
		Unlock(t, Take(t, b, "4"))
		Unlock(t, Take(t, c, "4"))
		<-three.Context().Done() // a loss counts as an end
		four := Take(t, a, "4")
		for _, l := range []*rowlock.Lock{one, two, four} {
			Unlock(t, l)
		}
		for range 2 {
			all, err := a.TryLockAll(t.Context(), []string{"2", "4", "5"})
			if err != nil {
				t.Fatal(err)
			}
			if err := all.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestANamespaceLimitsItsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, memstore.New(), nil)
		q := rowlock.Quota{Waiting: 2}
		a, again := tenant(t, c, "a", q), tenant(t, c, "a", q)
		l := Take(t, a, "k")
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() {
				_, err := a.Lock(ctx, "k")
				WantIs(t, "a waiter", err, context.Canceled)
			})
		}
		synctest.Wait()
		_, err := again.Lock(t.Context(), "k")
		wantFull(t, err, lease.QuotaError{Namespace: "a", What: "waiting", Limit: 2, Asked: 1})
		_, err = again.TryLock(t.Context(), "k")
		WantIs(t, "a call that does not wait", err, rowlock.ErrHeld)
		cancel()
		waiting.Wait()
		Unlock(t, l)
		Unlock(t, Take(t, again, "k"))
	})
}

// Whatever becomes of calls, what they have counted is given back.
func TestAQuotaIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 4
		c := Client(t, memstore.New(), nil)
		outer := tenant(t, c, "outer", rowlock.Quota{Held: most})
		n := tenant(t, outer, "inner", rowlock.Quota{Held: most + 1, Waiting: 5})
		var all sync.WaitGroup
		for seed := range uint64(8) {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1))
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(50))*time.Millisecond)
					keys := []string{"a", "b", "c"}[:1+rng.IntN(3)]
					if l, err := n.LockAll(ctx, keys, rowlock.MaxHold(100*time.Millisecond)); err == nil {
						time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
						_ = l.Unlock(t.Context())
					}
					cancel()
				}
			})
		}
		all.Wait()
		time.Sleep(time.Minute)
		got, err := n.TryLockAll(t.Context(), []string{"1", "2", "3", "4"})
		if err != nil {
			t.Fatalf("nothing is held: %v", err)
		}
		_, err = outer.TryLock(t.Context(), "5")
		wantFull(t, err, lease.QuotaError{Namespace: "outer", What: "held", Limit: most, Asked: 1})
		if err := got.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestANamespaceThatCannotBeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, memstore.New(), nil)
		tenant(t, c, "a", rowlock.Quota{Held: 1})
		for name, q := range map[string]rowlock.Quota{
			"": {}, strings.Repeat("n", 65): {}, "a/b": {}, "a": {Held: 2}, "b": {Held: -1}, "c": {Waiting: -1},
		} {
			if _, err := c.Namespace(name, q); !errors.Is(err, lease.ErrConfig) {
				t.Errorf("%.10q, %+v: %v", name, q, err)
			}
		}
		deep := c
		for range 4 {
			if next, err := deep.Namespace(strings.Repeat("n", 60), rowlock.Quota{}); err == nil {
				deep = next
			}
		}
		_, err := deep.TryLock(t.Context(), strings.Repeat("k", 20))
		WantIs(t, "a key that is too long with its namespaces", err, rowlock.ErrInvalidKey)
	})
}

// A Reentrant call names the key as its own client does, whichever client has locked it before.
func TestAReentrantHandleHasTheKeyOfItsOwnCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, memstore.New(), nil)
		a := tenant(t, c, "a", rowlock.Quota{})
		for _, call := range []struct {
			outer, inner *rowlock.Client
			first, key   string
		}{{c, a, "a/k", "k"}, {a, c, "k", "a/k"}} {
			outer := Take(t, call.outer, call.first)
			l, err := call.inner.Lock(outer.Context(), call.key, rowlock.Reentrant())
			if err != nil {
				t.Fatal(err)
			}
			if outer.Key() != call.first || l.Key() != call.key {
				t.Errorf("%q is %q, and %q is %q", call.first, outer.Key(), call.key, l.Key())
			}
			Unlock(t, l)
			ls, err := call.inner.LockAll(outer.Context(), []string{call.key, "b"}, rowlock.Reentrant())
			if err != nil {
				t.Fatal(err)
			}
			if ls.Lock(call.key) == nil || ls.Lock("b") == nil {
				t.Errorf("%q and b are locked as %q", call.key, ls.Keys())
			}
			if err := ls.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			Unlock(t, outer)
		}
	})
}
