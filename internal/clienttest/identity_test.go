package clienttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// hasNote reports whether the row has this note, behind the identity of its client.
func hasNote(r lease.Record, note string) bool {
	identity, stored := lease.SplitNote(r.Note)
	return identity != "" && identity == r.Identity() && stored == note
}

// identified returns a client with an identity, without a reaper.
func identified(t *testing.T, s lease.Store, identity string, fair bool) *rowlock.Client {
	t.Helper()
	return Client(t, s, &rowlock.Config{
		Identity: identity, Fair: fair, Reaper: rowlock.ReaperConfig{Off: true},
	})
}

// both runs a test with clients that are Fair and clients that are not.
func both(t *testing.T, f func(t *testing.T, s *memstore.Store, fair bool)) {
	t.Helper()
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair %t", fair), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, memstore.New(), fair) })
		})
	}
}

func wantHolder(t *testing.T, what string, err error, identity, note string) {
	t.Helper()
	var held *rowlock.HeldError
	if !errors.As(err, &held) || held.Identity != identity || held.Note != note {
		t.Errorf("%s: %#v, want it held by %q with note %q", what, err, identity, note)
	}
}

func TestALoserIsToldWhichProgramHoldsTheKey(t *testing.T) {
	both(t, func(t *testing.T, s *memstore.Store, fair bool) {
		holder, loser := identified(t, s, "web-1/4711/orders", fair), identified(t, s, "web-2", fair)
		defer runtime.KeepAlive(Take(t, holder, "k", rowlock.Note("nightly import")))
		_, err := loser.TryLock(t.Context(), "k")
		wantHolder(t, "TryLock", err, "web-1/4711/orders", "nightly import")
		const says = `rowlock: "k" is held by web-1/4711/orders (nightly import) for 30s more unless renewed`
		if err.Error() != says {
			t.Errorf("it says\n%s, want\n%s", err, says)
		}
		_, err = loser.TryLockAll(t.Context(), []string{"a", "k"})
		wantHolder(t, "TryLockAll", err, "web-1/4711/orders", "nightly import")
		for name, f := range map[string]func(context.Context) error{
			"Lock":    func(ctx context.Context) error { _, err := loser.Lock(ctx, "k"); return err },
			"LockAll": func(ctx context.Context) error { _, err := loser.LockAll(ctx, []string{"k", "z"}); return err },
			"Do": func(ctx context.Context) error {
				return loser.Do(ctx, "k", func(context.Context, *rowlock.Lock) error { return nil })
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			wantHolder(t, name, f(ctx), "web-1/4711/orders", "nightly import")
			cancel()
		}
	})
}

func TestEveryCallWritesTheIdentity(t *testing.T) {
	both(t, func(t *testing.T, s *memstore.Store, fair bool) {
		c := identified(t, s, "web-1", fair)
		want := func(key, note string) {
			t.Helper()
			if r := Record(t, s, key); r.Identity() != "web-1" || r.Note != "web-1\t"+note {
				t.Errorf("the row of %q is %+v", key, r)
			}
		}
		defer runtime.KeepAlive(Take(t, c, "try"))
		want("try", "")
		defer runtime.KeepAlive(Take(t, c, "twice", rowlock.Note("one"), rowlock.Note("two")))
		want("twice", "two")
		l, err := c.Lock(t.Context(), "lock", rowlock.Note("a\tb"))
		if err != nil {
			t.Fatal(err)
		}
		defer runtime.KeepAlive(l)
		want("lock", "a\tb")
		all, err := c.LockAll(t.Context(), []string{"x", "y"}, rowlock.Note("all"))
		if err != nil {
			t.Fatal(err)
		}
		defer runtime.KeepAlive(all)
		want("x", "all")
		want("y", "all")
		_ = c.Do(t.Context(), "do", func(context.Context, *rowlock.Lock) error { want("do", ""); return nil })
	})
}

// The key goes from one client's caller to the next, in another client and in the same one.
func TestTheNextHolderIsShownWithItsOwnIdentity(t *testing.T) {
	both(t, func(t *testing.T, s *memstore.Store, fair bool) {
		clients := []*rowlock.Client{identified(t, s, "one", fair), identified(t, s, "two", fair)}
		l := Take(t, clients[0], "k", rowlock.Note("first"))
		for _, n := range []int{0, 1, 1, 0} {
			note := fmt.Sprint("next of ", n)
			waiting := WaitIn(t, t.Context(), clients[n], "k", rowlock.Note(note))
			time.Sleep(time.Second)
			Unlock(t, l)
			got := <-waiting
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			l = got.Lock
			if r := Record(t, s, "k"); r.Identity() != []string{"one", "two"}[n] || !hasNote(r, note) {
				t.Errorf("the row is %+v", r)
			}
		}
	})
}

func TestAWaiterIsShownWhichProgramHoldsTheKey(t *testing.T) {
	both(t, func(t *testing.T, s *memstore.Store, fair bool) {
		one, two := identified(t, s, "one", fair), identified(t, s, "two", fair)
		l := Take(t, one, "k", rowlock.Note("same"))
		var mu sync.Mutex
		var seen []string
		watch := rowlock.OnWait(func(w rowlock.Waiting) {
			mu.Lock()
			defer mu.Unlock()
			if w.Identity != "" {
				seen = append(seen, w.Identity+" "+w.Holder)
			}
		})
		first := WaitIn(t, t.Context(), two, "k", rowlock.Note("same"), rowlock.Priority(10))
		WaitIn(t, t.Context(), two, "k", watch, rowlock.Priority(1))
		time.Sleep(time.Second)
		Unlock(t, l)
		defer runtime.KeepAlive((<-first).Lock)
		time.Sleep(5 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(seen) < 2 || seen[0] != "one same" || seen[len(seen)-1] != "two same" {
			t.Errorf("shown %q, want one and then two", seen)
		}
	})
}

func TestTheHookOfContentionHasTheIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		defer runtime.KeepAlive(Take(t, identified(t, s, "one", false), "k", rowlock.Note("why")))
		var told error
		c := Client(t, s, &rowlock.Config{
			Reaper: rowlock.ReaperConfig{Off: true},
			Hooks:  rowlock.Hooks{Contended: func(_ context.Context, _ string, held *rowlock.HeldError) { told = held }},
		})
		_, _ = c.TryLock(t.Context(), "k")
		wantHolder(t, "Contended", told, "one", "why")
	})
}

// An identity is for operators. Owners are random.
func TestClientsWithTheSameIdentityExcludeEachOther(t *testing.T) {
	both(t, func(t *testing.T, s *memstore.Store, fair bool) {
		one, two := identified(t, s, "same", fair), identified(t, s, "same", fair)
		l := Take(t, one, "k", rowlock.Note("same"))
		_, err := two.TryLock(t.Context(), "k", rowlock.Note("same"))
		wantHolder(t, "TryLock", err, "same", "same")
		_, err = one.TryLock(t.Context(), "k", rowlock.Note("same"))
		wantHolder(t, "TryLock", err, "same", "same")
		Unlock(t, l)
		next := Take(t, two, "k", rowlock.Note("same"))
		_ = l.Unlock(t.Context())
		if r := Record(t, s, "k"); !r.Held || r.Token != next.Token() {
			t.Errorf("the first client's unlock released the second's lock: %+v", r)
		}
	})
}

// A program that uses the store itself, or writes the table by hand, gives no identity.
func TestANoteWithoutAnIdentityIsANote(t *testing.T) {
	both(t, func(t *testing.T, s *memstore.Store, fair bool) {
		Another(t, s, "k", TTL)
		_, err := identified(t, s, "one", fair).TryLock(t.Context(), "k")
		wantHolder(t, "TryLock", err, "", "another")
		if says := err.Error(); !strings.Contains(says, `is held by "another" for`) {
			t.Error(says)
		}
	})
}

func TestWithoutAnIdentityItIsHostProcessAndProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		defer runtime.KeepAlive(Take(t, Client(t, s, nil), "k"))
		host, _ := os.Hostname()
		want := fmt.Sprintf("%s/%d/%s", host, os.Getpid(), filepath.Base(os.Args[0]))
		if got := Record(t, s, "k").Identity(); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	})
}

func TestABadIdentityIsRefusedByName(t *testing.T) {
	for identity, says := range map[string]string{
		strings.Repeat("é", 65): "130 bytes; at most 128",
		"a\tb":                  `"a\tb" must be UTF-8 without control characters`,
		"a\nb":                  `"a\nb"`, "a\x00b": `"a\x00b"`, "caf\xe9": `"caf\xe9"`, "a\u0085b": `"a\u0085b"`,
	} {
		_, err := rowlock.New(memstore.New(), &rowlock.Config{Identity: identity})
		if !errors.Is(err, rowlock.ErrConfig) || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "Identity") || strings.ContainsAny(err.Error(), "\n\t\x00") {
			t.Errorf("%q is refused with %v, want ErrConfig and %q", identity, err, says)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		identified(t, memstore.New(), strings.Repeat("é", 64), false)
	})
}

func TestADeadlockNamesThePrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		one, two := identified(t, s, "one", false), identified(t, s, "two", false)
		a, b := Take(t, one, "a"), Take(t, two, "b")
		go func() {
			if l, err := one.Lock(a.Context(), "b"); err == nil {
				_ = l.Unlock(t.Context())
			}
		}()
		time.Sleep(time.Second)
		_, err := two.Lock(b.Context(), "a")
		var d *rowlock.DeadlockError
		if !errors.As(err, &d) || len(d.Cycle) != 2 || d.Cycle[0].Identity != "two" || d.Cycle[1].Identity != "one" {
			t.Errorf("%#v, want a cycle of two and one", err)
		}
		Unlock(t, b)
		synctest.Wait()
		Unlock(t, a)
	})
}

// Nothing else changes: neither the note nor the waiter's position.
func TestAWaiterIsShownAnotherProgramWithTheSameNote(t *testing.T) {
	both(t, func(t *testing.T, s *memstore.Store, fair bool) {
		l := Take(t, identified(t, s, "one", fair), "k", rowlock.Note("same"))
		defer runtime.KeepAlive(l)
		seen := make(chan string, 100)
		WaitIn(t, t.Context(), identified(t, s, "two", fair), "k",
			rowlock.OnWait(func(w rowlock.Waiting) { seen <- w.Identity }))
		time.Sleep(time.Second)
		to := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: time.Hour}
		to.Note = lease.StoredNote("three", "same")
		from := Record(t, s, "k").Lease
		if a, err := s.HandOver(t.Context(), []lease.HandOver{{From: from, To: to}}); err != nil || !a[0].Granted {
			t.Fatal(a, err)
		}
		time.Sleep(time.Second)
		last := ""
		for len(seen) > 0 {
			last = <-seen
		}
		if last != "three" {
			t.Errorf("the last program shown is %q, want three", last)
		}
	})
}
