package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/semaphore"
)

const poll = 400 * time.Millisecond // the longest pause, and some

func TestNoMorePermitsAreHeldThanTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		a, b := process(t, s, 3), process(t, s, 3)
		first, second := take(t, a, 2), take(t, b, 1)
		full(t, a, 1)
		seen := map[int]bool{}
		for _, slot := range append(first.Slots(), second.Slots()...) {
			if seen[slot.ID] || slot.ID < 0 || slot.ID > 2 || slot.Token < 1 {
				t.Errorf("slot %+v", slot)
			}
			seen[slot.ID] = true
		}
		ok(t, second.Release(t.Context()))
		full(t, a, 2)
		take(t, b, 1)
	})
}

func TestPermitsAreGrantedTogetherOrNotAtAll(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		sem := process(t, s, 3)
		take(t, sem, 2)
		full(t, sem, 2)
		take(t, sem, 1) // the refused call has kept none
	})
}

func TestAReleaseInThisProcessWakesTheWaiterAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		sem := process(t, s, 1)
		held := take(t, sem, 1)
		waiter := waits(t, t.Context(), sem, 1)
		stillWaits(t, waiter, time.Minute)
		ok(t, held.Release(t.Context()))
		granted(t, waiter, 0)
	})
}

func TestAReleaseInAnotherProcessWakesTheWaiterAtOnce(t *testing.T) {
	for name, of := range map[string]func(*testing.T, lease.Store, int) *semaphore.Semaphore{
		"any":      func(t *testing.T, s lease.Store, limit int) *semaphore.Semaphore { return process(t, s, limit) },
		"in order": fair,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *clienttest.Script) {
				a, b := of(t, s, 2), of(t, s, 2)
				first, _ := take(t, a, 1), take(t, a, 1)
				waiter := waits(t, t.Context(), b, 1)
				stillWaits(t, waiter, time.Minute)
				ok(t, first.Release(t.Context()))
				granted(t, waiter, 0)
			})
		})
	}
}

// With hints off, or where the database has none.
func TestAReleaseInAnotherProcessIsFoundSoonWithoutAHint(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		cfg := &rowlock.Config{Hints: rowlock.HintsOff}
		cfg.Reaper.Off = true
		a, b := process(t, s, 2), of(t, clienttest.Client(t, s, cfg), 2)
		first, _ := take(t, a, 1), take(t, a, 1)
		waiter := waits(t, t.Context(), b, 1)
		stillWaits(t, waiter, time.Minute)
		ok(t, first.Release(t.Context()))
		granted(t, waiter, poll)
	})
}

func TestAWaiterForAHolderThatDiedIsServedWhenItsLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		dead := process(t, s, 2, semaphore.With(rowlock.NoRenew(), rowlock.TTL(5*time.Second)))
		take(t, dead, 2)
		waiter := waits(t, t.Context(), process(t, s, 2), 2)
		stillWaits(t, waiter, 4*time.Second)
		granted(t, waiter, time.Second+poll)
	})
}

// One waiter asks for slots, and the others wait for its turn to end.
func TestManyWaitersCostNoMoreThanOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		sem := process(t, s, 1)
		held := take(t, sem, 1)
		var all []<-chan got
		for range 20 {
			all = append(all, waits(t, t.Context(), sem, 1))
		}
		for i, waiter := range all { // in the order they came
			for _, later := range all[i:] {
				stillWaits(t, later, 0)
			}
			ok(t, held.Release(t.Context()))
			held = granted(t, waiter, poll)
		}
	})
}

func TestAWaiterThatGivesUpLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		sem := process(t, s, 1)
		held := take(t, sem, 1)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := waits(t, ctx, sem, 1), waits(t, t.Context(), sem, 1)
		cancel()
		g := <-first
		clienttest.WantIs(t, "Acquire", g.err, context.Canceled, rowlock.ErrHeld)
		ok(t, held.Release(t.Context()))
		granted(t, second, poll)
		if clienttest.IsHeld(t, s, semaphore.QueueKey("s")) {
			t.Error("the turn is kept")
		}
	})
}

func TestALargerLimitServesWaitersOfAllProcesses(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		a, b := process(t, s, 1), process(t, s, 1)
		take(t, a, 1)
		waiter := waits(t, t.Context(), b, 1)
		stillWaits(t, waiter, time.Minute)
		ok(t, a.Resize(t.Context(), 2))
		granted(t, waiter, poll)
		if n, err := b.Limit(t.Context()); err != nil || n != 2 {
			t.Errorf("the limit is %d, %v", n, err)
		}
	})
}

func TestASmallerLimitTakesNoPermitAwayAndGrantsNone(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		a, b := process(t, s, 5), process(t, s, 5)
		var held []*semaphore.Permit
		for range 5 {
			held = append(held, take(t, a, 1))
		}
		full(t, b, 1) // b uses it too
		ok(t, a.Resize(t.Context(), 2))
		for _, p := range held[:4] {
			full(t, b, 1)
			ok(t, context.Cause(p.Context()))
			ok(t, p.Release(t.Context()))
		}
		take(t, b, 1)
		full(t, b, 1)
	})
}

func TestAWaiterForMoreThanASmallerLimitIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		sem := process(t, s, 3)
		take(t, sem, 1)
		waiter := waits(t, t.Context(), sem, 3)
		ok(t, sem.Resize(t.Context(), 2))
		clienttest.WantIs(t, "Acquire", (<-waiter).err, rowlock.ErrConfig)
	})
}

func TestAProcessThatUsesAnotherLimitIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		take(t, process(t, s, 5), 1)
		other := process(t, s, 6)
		_, err := other.Acquire(t.Context(), 1)
		var says *semaphore.LimitError
		if !errors.As(err, &says) || says.Slots != 6 || says.Found != 5 || !errors.Is(err, semaphore.ErrLimit) {
			t.Errorf("got %v", err)
		}
		clienttest.WantIs(t, "Resize", other.Resize(t.Context(), 7), semaphore.ErrLimit)
	})
}

// Calls for one slot keep coming, and do not keep a call for all from its turn.
func TestInOrderALargeRequestIsServedBeforeLaterSmallOnes(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		a, b := fair(t, s, 3), fair(t, s, 3)
		first, second := take(t, a, 1), take(t, a, 1)
		large := waits(t, t.Context(), a, 3)
		small := waits(t, t.Context(), b, 1)
		full(t, b, 1) // though a slot is free
		ok(t, first.Release(t.Context()))
		stillWaits(t, small, time.Minute)
		ok(t, second.Release(t.Context()))
		p := granted(t, large, time.Second)
		stillWaits(t, small, time.Minute)
		ok(t, p.Release(t.Context()))
		granted(t, small, 10*time.Second)
	})
}

func TestAPermitEndsWhenItsLeaseIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		sem := process(t, s, 2)
		p := take(t, sem, 2)
		for _, slot := range p.Slots() {
			_, err := s.Store.Release(t.Context(), leases(t, s, slot))
			ok(t, err)
		}
		<-p.Context().Done()
		clienttest.WantIs(t, "the cause", context.Cause(p.Context()), rowlock.ErrLost)
		clienttest.WantIs(t, "Release", p.Release(t.Context()), rowlock.ErrLost)
	})
}

func TestAPermitOfAnotherSemaphoreIsNotReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		c := clienttest.Client(t, s, nil)
		sem := of(t, c, 1)
		other, err := semaphore.New(c, "other", 1)
		ok(t, err)
		p := take(t, sem, 1)
		clienttest.WantIs(t, "Release", other.Release(t.Context(), p), semaphore.ErrOther)
		clienttest.WantIs(t, "Release", other.Release(t.Context(), nil), rowlock.ErrConfig)
		full(t, sem, 1)
		ok(t, sem.Release(t.Context(), p))
		clienttest.WantIs(t, "Release", sem.Release(t.Context(), p), rowlock.ErrUnlocked)
	})
}

func TestBadInputIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		c := clienttest.Client(t, s, nil)
		long := strings.Repeat("n", 239)
		for name, limit := range map[string]int{"a": 0, "b": -1, "c": 513} {
			_, err := semaphore.New(c, name, limit)
			clienttest.WantIs(t, "New", err, rowlock.ErrConfig)
		}
		for _, name := range []string{"", long + "n"} {
			_, err := semaphore.New(c, name, 1)
			clienttest.WantIs(t, "New", err, rowlock.ErrInvalidKey)
		}
		_, err := semaphore.New(nil, "s", 1)
		clienttest.WantIs(t, "New", err, rowlock.ErrConfig)
		_, err = semaphore.New(c, "s", 1, nil)
		clienttest.WantIs(t, "New", err, rowlock.ErrConfig)
		sem, err := semaphore.New(c, long, 3)
		ok(t, err)
		for _, n := range []int{0, -1, 513} {
			_, err := sem.Acquire(t.Context(), n)
			clienttest.WantIs(t, "Acquire", err, rowlock.ErrConfig)
			clienttest.WantIs(t, "Resize", sem.Resize(t.Context(), n), rowlock.ErrConfig)
		}
		var none context.Context
		_, err = sem.Acquire(none, 1)
		clienttest.WantIs(t, "Acquire", err, rowlock.ErrConfig)
		_, err = sem.TryAcquire(t.Context(), 4)
		clienttest.WantIs(t, "TryAcquire", err, rowlock.ErrConfig)
		rows, err := s.Store.Inspect(t.Context(), lease.Filter{})
		if ok(t, err); len(s.Acquires) > 0 || len(rows) > 0 {
			t.Error("something was written")
		}
		made, err := c.MakeLimit(t.Context(), lease.Limit{Name: "semaphore/" + long, Slots: 7})
		if ok(t, err); made.Slots != 7 {
			t.Errorf("the limit was made with %d", made.Slots)
		}
	})
}

func TestPermitsCountInTheirNamespace(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		c := clienttest.Client(t, s, nil)
		tenant, err := c.Namespace("billing", rowlock.Quota{Held: 2})
		ok(t, err)
		sem := of(t, tenant, 3)
		p := take(t, sem, 2)
		_, err = sem.TryAcquire(t.Context(), 1)
		clienttest.WantIs(t, "TryAcquire", err, rowlock.ErrQuota)
		take(t, of(t, c, 1), 1) // another semaphore
		ok(t, p.Release(t.Context()))
		take(t, sem, 1)
		if p.ID() > 2 || p.Slots()[0].Lock.Key() != "semaphore/s/00"+string(rune('0'+p.ID())) {
			t.Errorf("slots %+v", p.Slots())
		}
	})
}

// inWays has f called for calls that wait in line and for those that wait in order.
func inWays(t *testing.T, f func(t *testing.T, s *clienttest.Script, opts ...semaphore.Option)) {
	for name, opts := range map[string][]semaphore.Option{"": nil, "in order": {semaphore.InOrder()}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *clienttest.Script) { f(t, s, opts...) })
		})
	}
}

// An end of the turn by the client's MaxHold or MaxIdle would have others overtake the waiter.
func TestATurnOutlastsMaxHoldAndMaxIdle(t *testing.T) {
	inWays(t, func(t *testing.T, s *clienttest.Script, opts ...semaphore.Option) {
		for _, cfg := range []*rowlock.Config{{MaxHold: 10 * time.Second}, {MaxIdle: 10 * time.Second}} {
			held := take(t, process(t, s, 1), 1)
			cfg.Reaper.Off, cfg.Fair = true, true
			cfg.Hooks.Lost = func(_ context.Context, key string, _ rowlock.Token, cause error) {
				t.Errorf("%s: %v", key, cause)
			}
			sem := of(t, clienttest.Client(t, s, cfg), 1, opts...)
			first := waits(t, t.Context(), sem, 1)
			second := waits(t, t.Context(), of(t, clienttest.Client(t, s, cfg), 1, opts...), 1)
			stillWaits(t, first, time.Minute)
			ok(t, held.Release(t.Context()))
			held = granted(t, first, time.Second)
			stillWaits(t, second, 0)
			ok(t, held.Release(t.Context()))
			ok(t, granted(t, second, time.Second).Release(t.Context()))
		}
	})
}

func TestAWaiterWhoseTurnEndsTakesAnother(t *testing.T) {
	inWays(t, func(t *testing.T, s *clienttest.Script, opts ...semaphore.Option) {
		held := take(t, process(t, s, 1), 1)
		c := clienttest.Client(t, s, nil)
		waiter := waits(t, t.Context(), of(t, c, 1, opts...), 1)
		stillWaits(t, waiter, time.Minute)
		first := clienttest.Record(t, s, semaphore.QueueKey("s")).Token
		_, err := c.ForceRelease(t.Context(), semaphore.QueueKey("s"), rowlock.Force{By: "a test", Reason: "a test"})
		ok(t, err)
		stillWaits(t, waiter, time.Minute)
		if now := clienttest.Record(t, s, semaphore.QueueKey("s")); now.Token == first || now.Remaining <= 0 {
			t.Errorf("after turn %d the waiter has %+v", first, now)
		}
		ok(t, held.Release(t.Context()))
		ok(t, granted(t, waiter, time.Second).Release(t.Context()))
	})
}

func TestAWaiterOfAClientThatClosesIsToldSo(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		take(t, process(t, s, 1), 1)
		c := clienttest.Client(t, s, nil)
		waiter := waits(t, t.Context(), of(t, c, 1), 1)
		ok(t, c.Close())
		clienttest.WantIs(t, "Acquire", (<-waiter).err, rowlock.ErrClosed)
	})
}
