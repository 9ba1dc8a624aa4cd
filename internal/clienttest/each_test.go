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
	"github.com/rowlockdb/rowlock/reaper"
	"github.com/rowlockdb/rowlock/semaphore"
)

// waitEach starts a LockEach that must wait.
func waitEach(
	t *testing.T, ctx context.Context, c *rowlock.Client, parts ...rowlock.Part,
) <-chan WaitedAll {
	t.Helper()
	done := make(chan WaitedAll, 1)
	go func() {
		l, err := c.LockEach(ctx, parts)
		done <- WaitedAll{l, err}
	}()
	synctest.Wait()
	if len(done) > 0 {
		t.Fatalf("did not wait: %+v", <-done)
	}
	return done
}

func tryEach(t *testing.T, c *rowlock.Client, parts ...rowlock.Part) *rowlock.Locks {
	t.Helper()
	l, err := c.TryLockEach(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// got returns what a call that waits has got within d.
func got(t *testing.T, c <-chan WaitedAll, d time.Duration) *rowlock.Locks {
	t.Helper()
	select {
	case w := <-c:
		if w.Err != nil {
			t.Fatal(w.Err)
		}
		return w.Locks
	case <-time.After(d):
		t.Fatalf("not granted within %s", d)
		return nil
	}
}

func reports(t *testing.T, c *rowlock.Client, limit int) *semaphore.Semaphore {
	t.Helper()
	s, err := semaphore.New(c, "reports", limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// state names what is held: an exclusive key by itself, a shared one with its members, slots by
// their number.
func state(t *testing.T, s lease.Store) string {
	t.Helper()
	synctest.Wait()
	rows, err := s.Inspect(context.Background(), lease.Filter{Held: true})
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	slots := 0
	for _, r := range rows {
		_, slot := lease.Limit{Name: "semaphore/reports"}.Index(r.Key)
		switch {
		case r.Key == reaper.Key:
		case slot:
			slots++
		case r.Shared:
			held = append(held, fmt.Sprint(r.Key, "*", r.Members))
		default:
			held = append(held, r.Key)
		}
	}
	if slots > 0 {
		held = append(held, fmt.Sprint("permits*", slots))
	}
	return strings.Join(held, " ")
}

func wantState(t *testing.T, s lease.Store, want string) {
	t.Helper()
	if got := state(t, s); got != want {
		t.Errorf("held: %q, want %q", got, want)
	}
}

// plainAndFair runs f with clients that are Fair, and with clients that are not.
func plainAndFair(t *testing.T, f func(t *testing.T, s *memstore.Store, a, b *rowlock.Client)) {
	for name, cfg := range map[string]*rowlock.Config{"": {}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, a, b := readers(t, cfg)
				f(t, s, a, b)
			})
		})
	}
}

func TestLockEachGetsAllKindsOrNothing(t *testing.T) {
	plainAndFair(t, func(t *testing.T, s *memstore.Store, a, b *rowlock.Client) {
		sem := reports(t, a, 3)
		parts := []rowlock.Part{
			rowlock.Exclusive("b", "a"), rowlock.Shared("s"), sem.Permits(2), rowlock.Exclusive("a"),
		}
		l := tryEach(t, a, parts...)
		wantState(t, s, "a b s*1 permits*2")
		if keys := l.Keys(); len(keys) != 5 || len(sem.Slots(l)) != 2 || l.Lock("s").Token() == 0 {
			t.Errorf("%q, %+v", keys, sem.Slots(l))
		}
		time.Sleep(10 * time.Minute) // renewed
		if l.Context().Err() != nil {
			t.Fatal(context.Cause(l.Context()))
		}
		UnlockAll(t, l)
		wantState(t, s, "")

		for name, hold := range map[string]func() interface{ Unlock(context.Context) error }{
			"a": func() interface{ Unlock(context.Context) error } { return Take(t, b, "a") },
			"s": func() interface{ Unlock(context.Context) error } { return Take(t, b, "s") },
			"semaphore/reports": func() interface{ Unlock(context.Context) error } {
				return tryEach(t, b, reports(t, b, 3).Permits(2))
			},
		} {
			held := hold()
			before := state(t, s)
			_, err := a.TryLockEach(t.Context(), parts)
			var by *rowlock.HeldError
			if !errors.As(err, &by) || by.Key != name {
				t.Errorf("%s is held: %v", name, err)
			}
			wantState(t, s, before)
			waits := waitEach(t, t.Context(), a, parts...)
			if err := held.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			UnlockAll(t, got(t, waits, time.Second))
			wantState(t, s, "")
		}
	})
}

// A loser reads, and asks for nothing that could be granted without the rest.
func TestALosingLockEachWritesNothing(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		other := Client(t, s, nil)
		sem := reports(t, c, 2)
		if _, err := sem.Limit(t.Context()); err != nil {
			t.Fatal(err)
		}
		reader := share(t, other, "s")
		parts := []rowlock.Part{rowlock.Exclusive("a"), rowlock.Shared("s"), sem.Permits(1)}
		check := func(what string) {
			t.Helper()
			// It does not end at a beat of polls: what is cut short is cleaned up, which is a release.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute+7*time.Millisecond)
			defer cancel()
			acquires, _, releases := s.Calls()
			alls, anys := len(s.AcquireAlls), len(s.AcquireAnys)
			polls := s.Polled()
			_, err := c.LockEach(ctx, parts)
			WantIs(t, what, err, rowlock.ErrHeld, context.DeadlineExceeded)
			now, _, gone := s.Calls()
			if now != acquires || gone != releases || len(s.AcquireAlls) != alls || len(s.AcquireAnys) != anys {
				t.Errorf("%s: %d acquires, %d releases", what, now-acquires, gone-releases)
			}
			if n := s.Polled() - polls; n > 900 {
				t.Errorf("%s: %d reads in a minute", what, n)
			}
		}
		l := Take(t, other, "a")
		check("an exclusive key")
		Unlock(t, l)
		p := tryEach(t, other, reports(t, other, 2).Permits(2))
		check("permits")
		UnlockAll(t, p)
		drop(t, reader)
		l = Take(t, other, "s")
		check("a shared key")
		Unlock(t, l)
		wantState(t, s, "")
	})
}

func TestLockEachThatIsCanceledLeavesNothing(t *testing.T) {
	plainAndFair(t, func(t *testing.T, s *memstore.Store, a, b *rowlock.Client) {
		sem := reports(t, a, 1)
		reader := share(t, b, "a")
		p := tryEach(t, b, reports(t, b, 1).Permits(1))
		for _, parts := range [][]rowlock.Part{
			{rowlock.Exclusive("a"), rowlock.Shared("s")},
			{rowlock.Shared("s"), sem.Permits(1)},
			{sem.Permits(1)},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			waits := waitEach(t, ctx, a, parts...)
			time.Sleep(3 * time.Second)
			cancel()
			WantIs(t, "LockEach", (<-waits).Err, context.Canceled, rowlock.ErrHeld)
			time.Sleep(time.Second)
			wantState(t, s, "a*1 permits*1")
			if n := a.Stats().Waiting; n != 0 {
				t.Errorf("%d wait", n)
			}
		}
		drop(t, share(t, b, "a")) // the wish to have it exclusively is withdrawn
		drop(t, reader)
		UnlockAll(t, p)
	})
}

// Writers are preferred: an exclusive part keeps new readers out, and a shared part waits behind a
// writer that waits.
func TestLockEachKeepsTheOrderOfReadersAndWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, b := readers(t, &rowlock.Config{})
		reader := share(t, b, "k")
		ctx, cancel := context.WithCancel(t.Context())
		writer := waitEach(t, ctx, a, rowlock.Exclusive("k"), rowlock.Shared("s"))
		time.Sleep(time.Second)
		if _, err := b.TryLockEach(t.Context(), []rowlock.Part{
			rowlock.Shared("k"), rowlock.Exclusive("x"),
		}); !errors.Is(err, rowlock.ErrHeld) {
			t.Errorf("a reader beside a writer that waits: %v", err)
		}
		wantState(t, s, "k*1")
		cancel()
		WantIs(t, "LockEach", (<-writer).Err, context.Canceled)
		UnlockAll(t, tryEach(t, b, rowlock.Shared("k"), rowlock.Exclusive("x")))
		drop(t, reader)
	})
}

func TestLockEachRefusesWhatItsChainHolds(t *testing.T) {
	plainAndFair(t, func(t *testing.T, s *memstore.Store, a, _ *rowlock.Client) {
		sem := reports(t, a, 2)
		l := tryEach(t, a, rowlock.Exclusive("e"), rowlock.Shared("s"), sem.Permits(1))
		ctx := l.Context()
		before := state(t, s)
		for name, c := range map[string]struct {
			part rowlock.Part
			want error
		}{
			"exclusive again":         {rowlock.Exclusive("e"), rowlock.ErrDeadlock},
			"exclusive, now shared":   {rowlock.Shared("e"), rowlock.ErrDeadlock},
			"shared again":            {rowlock.Shared("s"), rowlock.ErrDeadlock},
			"shared, now exclusive":   {rowlock.Exclusive("s"), rowlock.ErrUpgrade},
			"more permits than exist": {sem.Permits(2), rowlock.ErrDeadlock},
		} {
			parts := []rowlock.Part{rowlock.Exclusive("x"), rowlock.Shared("y"), c.part}
			_, err := a.LockEach(ctx, parts)
			WantIs(t, name, err, c.want)
			_, err = a.TryLockEach(ctx, parts)
			WantIs(t, name, err, c.want)
		}
		wantState(t, s, before)
		more, err := a.LockEach(ctx, []rowlock.Part{sem.Permits(1)})
		WantIs(t, "one more", err)
		UnlockAll(t, more)
		UnlockAll(t, l)
	})
}

func TestLockEachRefusesBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, b := readers(t, &rowlock.Config{})
		sem, other := reports(t, a, 2), reports(t, b, 2)
		tenant, err := a.Namespace("billing", rowlock.Quota{})
		WantIs(t, "Namespace", err)
		inOrder, err := semaphore.New(a, "reports", 2, semaphore.InOrder())
		WantIs(t, "New", err)
		x := rowlock.Exclusive("x")
		for want, parts := range map[string][]rowlock.Part{
			"no keys to lock":              {},
			"no keys":                      {rowlock.Exclusive(), rowlock.Shared()},
			"part 2 is empty":              {x, {}},
			`"x" is to be locked exclus`:   {x, rowlock.Shared("x")},
			"0 permits":                    {x, sem.Permits(0)},
			"-1 permits":                   {x, sem.Permits(-1)},
			"1 to 2 are allowed":           {x, sem.Permits(3)},
			"belong to another client":     {x, other.Permits(1)},
			"named twice":                  {sem.Permits(1), x, sem.Permits(1)},
			"is a slot of":                 {rowlock.Shared("semaphore/reports/001"), sem.Permits(1)},
			"invalid key":                  {rowlock.Exclusive(""), rowlock.Shared("s")},
			"InOrder":                      {x, inOrder.Permits(1)},
			"at most 512 are allowed":      {rowlock.Exclusive(many(300)...), rowlock.Shared(many2(300)...)},
			"to another client; make the ": {x, reports(t, tenant, 2).Permits(1)},
		} {
			for _, try := range []bool{true, false} {
				lock := a.LockEach
				if try {
					lock = a.TryLockEach
				}
				if _, err := lock(t.Context(), parts); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
		}
		_, err = a.LockEach(t.Context(), []rowlock.Part{x, rowlock.Shared("s")}, rowlock.Reentrant())
		WantIs(t, "Reentrant", err, rowlock.ErrConfig)
		_, err = a.LockEach(noContext, []rowlock.Part{x})
		WantIs(t, "no ctx", err, rowlock.ErrConfig)
		wantState(t, s, "")
	})
}

func many(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("k", i))
	}
	return keys
}

func many2(n int) (keys []string) {
	for _, key := range many(n) {
		keys = append(keys, "s"+key)
	}
	return keys
}

func TestLockEachNeedsTheAbilitiesItUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := Client(t, Bare{s}, nil)
		for name, part := range map[string]rowlock.Part{
			"shared": rowlock.Shared("s"), "permits": reports(t, c, 2).Permits(1),
		} {
			_, err := c.LockEach(t.Context(), []rowlock.Part{rowlock.Exclusive("a"), part})
			WantIs(t, name, err, rowlock.ErrUnsupported)
		}
		wantState(t, s, "")
		UnlockAll(t, tryEach(t, c, rowlock.Exclusive("a", "b")))
	})
}

func TestLockEachCountsInItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, _ := readers(t, &rowlock.Config{})
		c, err := a.Namespace("billing", rowlock.Quota{Held: 4})
		WantIs(t, "Namespace", err)
		sem := reports(t, c, 3)
		_, err = c.LockEach(t.Context(), []rowlock.Part{
			rowlock.Exclusive("a"), rowlock.Shared("s"), sem.Permits(3),
		})
		WantIs(t, "LockEach", err, rowlock.ErrQuota)
		l := tryEach(t, c, rowlock.Exclusive("a"), rowlock.Shared("s"), sem.Permits(2))
		if keys := l.Keys(); keys[0] != "a" || keys[1] != "s" || len(sem.Slots(l)) != 2 {
			t.Errorf("%q", keys)
		}
		_, err = c.TryLock(t.Context(), "b")
		WantIs(t, "TryLock", err, rowlock.ErrQuota)
		UnlockAll(t, l)
		Unlock(t, Take(t, c, "b"))
		wantState(t, s, "")
	})
}

// One statement's answer is lost: nothing of the whole is left.
func TestLockEachOfUnknownOutcomeIsCleanedUp(t *testing.T) {
	lost := fmt.Errorf("%w: connection lost", lease.ErrUnknown)
	for _, executed := range []bool{true, false} {
		Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
			sem := reports(t, c, 2)
			reader := share(t, Client(t, s, nil), "joined")
			n := 0
			s.OnAcquire = func(ctx context.Context, r []lease.AcquireRequest) ([]lease.Acquired, error) {
				if n++; executed {
					_, _ = s.Store.Acquire(ctx, r)
				}
				return nil, lost
			}
			s.OnAcquireAll = func(ctx context.Context, r []lease.AcquireRequest) ([]lease.Acquired, error) {
				if n++; executed {
					_, _ = s.Store.AcquireAll(ctx, r)
				}
				return nil, lost
			}
			for _, parts := range [][]rowlock.Part{
				{rowlock.Exclusive("a"), rowlock.Shared("joined", "free"), sem.Permits(2)},
				{rowlock.Exclusive("a"), rowlock.Shared("joined"), sem.Permits(1)},
			} {
				_, err := c.LockEach(t.Context(), parts)
				WantIs(t, "LockEach", err, rowlock.ErrUnknown)
			}
			s.OnAcquire, s.OnAcquireAll = nil, nil
			time.Sleep(10 * time.Second)
			wantState(t, s, "joined*1")
			if n != 2 {
				t.Errorf("%d answers were lost", n)
			}
			drop(t, reader)
		})
	}
}

// Nothing is told before all is held, nor of what is not kept.
func TestHooksHearOfNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		cfg := &rowlock.Config{}
		cfg.Hooks.Acquired = func(_ context.Context, key string, _ int64, _ time.Duration) {
			told = append(told, key)
		}
		s, a, b := readers(t, cfg)
		sem := reports(t, a, 1)
		l := Take(t, b, "z")
		told = nil
		waits := waitEach(t, t.Context(), a, rowlock.Exclusive("a", "z"), rowlock.Shared("s"), sem.Permits(1))
		time.Sleep(time.Minute)
		if len(told) > 0 {
			t.Errorf("told of %q", told)
		}
		Unlock(t, l)
		all := got(t, waits, time.Second)
		if len(told) != 4 {
			t.Errorf("told of %q", told)
		}
		UnlockAll(t, all)
		wantState(t, s, "")
	})
}

// The wait for a permit is over soon after a release in this process, and 333 ms after one
// elsewhere.
func TestLockEachGetsAPermitThatIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, b := readers(t, &rowlock.Config{})
		sem := reports(t, a, 2)
		for _, c := range []*rowlock.Client{a, b} {
			p, err := reports(t, c, 2).TryAcquire(t.Context(), 2)
			WantIs(t, "TryAcquire", err)
			first := waitEach(t, t.Context(), a, rowlock.Exclusive("x"), sem.Permits(1))
			second := waitEach(t, t.Context(), a, rowlock.Exclusive("y"), sem.Permits(1))
			time.Sleep(5 * time.Second)
			WantIs(t, "Release", p.Release(t.Context()))
			limit := 20 * time.Millisecond
			if c == b {
				limit = 600 * time.Millisecond
			}
			l := got(t, first, limit)
			UnlockAll(t, got(t, second, limit))
			UnlockAll(t, l)
		}
		wantState(t, s, "")
		// And a semaphore's waiter gets what LockEach has released.
		l := tryEach(t, a, rowlock.Exclusive("x"), sem.Permits(2))
		done := make(chan error, 1)
		go func() {
			p, err := sem.Acquire(t.Context(), 1)
			if err == nil {
				err = p.Release(t.Context())
			}
			done <- err
		}()
		time.Sleep(5 * time.Second)
		began := time.Now()
		UnlockAll(t, l)
		if err := <-done; err != nil || time.Since(began) > 30*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// A read only spares work: without it, and if it is wrong, the steps that follow refuse, and what
// was got is released.
func TestLockEachBelievesNoRead(t *testing.T) {
	for name, read := range map[string]func(context.Context, lease.Filter) ([]lease.Record, error){
		"fails": func(context.Context, lease.Filter) ([]lease.Record, error) { return nil, ErrDown },
		"old":   func(context.Context, lease.Filter) ([]lease.Record, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				other := Client(t, s, nil)
				reader, l := share(t, other, "s"), Take(t, other, "a")
				sem := reports(t, c, 2)
				parts := []rowlock.Part{rowlock.Exclusive("a", "b"), rowlock.Shared("s", "u"), sem.Permits(2)}
				s.OnInspect = read
				_, err := c.TryLockEach(t.Context(), parts)
				WantIs(t, "TryLockEach", err, rowlock.ErrHeld)
				s.OnInspect = nil
				wantState(t, s, "a s*1")
				Unlock(t, l)
				s.OnInspect = read
				all := tryEach(t, c, parts...)
				s.OnInspect = nil
				wantState(t, s, "a b s*2 u*1 permits*2")
				UnlockAll(t, all)
				drop(t, reader)
			})
		})
	}
}

// A reader of a key that the call shares too does not keep it waiting: that both wait, each for
// what the other's ctx holds, is no cycle.
func TestAReaderBesideALockEachIsNoCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, b := readers(t, &rowlock.Config{})
		h, e, reader := Take(t, a, "h"), Take(t, b, "e"), share(t, b, "s")
		mixed := make(chan error, 1)
		go func() {
			l, err := a.LockEach(h.Context(), []rowlock.Part{rowlock.Exclusive("e"), rowlock.Shared("s")})
			if err == nil {
				err = l.Unlock(t.Context())
			}
			mixed <- err
		}()
		ctx, cancel := context.WithTimeout(reader.Context(), 20*time.Second)
		defer cancel()
		_, err := b.Lock(ctx, "h")
		WantIs(t, "Lock", err, context.DeadlineExceeded)
		if errors.Is(err, rowlock.ErrDeadlock) || len(mixed) > 0 {
			t.Fatal("a call was ended for a cycle that is none")
		}
		Unlock(t, e)
		WantIs(t, "LockEach", <-mixed)
		drop(t, reader)
		Unlock(t, h)
		wantState(t, s, "")
	})
}

// A panic in a hook leaves nothing behind.
func TestALockEachWhoseHookPanicsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := &rowlock.Config{}
		cfg.Hooks.Contended = func(_ context.Context, key string, _ *rowlock.HeldError) {
			if key == "a" {
				panic("hook")
			}
		}
		s := NewScript()
		a, b := Client(t, s, cfg), Client(t, s, nil)
		sem := reports(t, a, 2)
		reader, l := share(t, b, "s"), Take(t, b, "a")
		s.OnInspect = func(context.Context, lease.Filter) ([]lease.Record, error) { return nil, nil }
		for _, lock := range []func(context.Context, []rowlock.Part, ...rowlock.Option) (*rowlock.Locks, error){
			a.LockEach, a.TryLockEach,
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				_, _ = lock(t.Context(), []rowlock.Part{
					rowlock.Exclusive("a"), rowlock.Shared("s"), sem.Permits(2),
				})
			}()
		}
		s.OnInspect = nil
		wantState(t, s, "a s*1")
		if n := a.Stats().Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
		drop(t, reader)
		Unlock(t, l)
	})
}

// A limit that is changed while a call waits is followed, and a call that wants more than there are
// by then is refused.
func TestLockEachFollowsAResize(t *testing.T) {
	plainAndFair(t, func(t *testing.T, s *memstore.Store, a, b *rowlock.Client) {
		one, two := reports(t, a, 3), reports(t, b, 3)
		p := tryEach(t, b, two.Permits(3))
		first := waitEach(t, t.Context(), a, rowlock.Exclusive("x"), one.Permits(1))
		second := waitEach(t, t.Context(), a, rowlock.Exclusive("y"), one.Permits(3))
		WantIs(t, "Resize", two.Resize(t.Context(), 4))
		l := got(t, first, time.Second)
		WantIs(t, "Resize", two.Resize(t.Context(), 2))
		if w := <-second; w.Err == nil || !errors.Is(w.Err, rowlock.ErrConfig) {
			t.Errorf("3 permits of 2: %v", w.Err)
		}
		// Four are held under a limit of 2: none is granted before three are free.
		third := waitEach(t, t.Context(), a, rowlock.Exclusive("z"), one.Permits(1))
		UnlockAll(t, l)
		time.Sleep(time.Second)
		if len(third) > 0 {
			t.Error("granted beyond a smaller limit")
		}
		UnlockAll(t, p)
		UnlockAll(t, got(t, third, time.Second))
		wantState(t, s, "")
	})
}
