package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/semaphore"
)

// passer is a store whose hand-overs of slots a test sees.
type passer struct {
	lease.Store
	lease.SlotPasser
	passed, asked atomic.Int64
	around        func(pass func() ([]lease.Acquired, error)) ([]lease.Acquired, error)
	answered      func() // after each ask, before its caller is told
}

func newPasser(t *testing.T, s *clienttest.Script) *passer {
	t.Helper()
	slots, has := adapter.As[lease.SlotPasser](s)
	if !has {
		t.Fatal("the store hands no slots over")
	}
	return &passer{Store: s, SlotPasser: slots}
}

func (p *passer) Unwrap() lease.Store { return p.Store }

func (p *passer) AcquireWithin(
	ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int,
) ([]lease.Acquired, error) {
	p.asked.Add(1)
	if p.answered != nil {
		defer p.answered()
	}
	return p.SlotPasser.AcquireWithin(ctx, l, reqs, n)
}

func (p *passer) PassSlots(
	ctx context.Context, name string, items []lease.SlotHandOver,
) ([]lease.Acquired, error) {
	p.passed.Add(1)
	pass := func() ([]lease.Acquired, error) { return p.SlotPasser.PassSlots(ctx, name, items) }
	if p.around != nil {
		return p.around(pass)
	}
	return pass()
}

// withPasser runs f in a bubble.
func withPasser(t *testing.T, f func(t *testing.T, s *passer)) {
	t.Helper()
	bubble(t, func(t *testing.T, s *clienttest.Script) { f(t, newPasser(t, s)) })
}

// queued has calls for one slot each wait, one after the other.
func queued(t *testing.T, s *semaphore.Semaphore, n int) (all []<-chan got) {
	t.Helper()
	for range n {
		all = append(all, waits(t, t.Context(), s, 1))
	}
	return all
}

// The answer of the ask, that no slot is free, is older than the release.
func TestAReleaseWhileItsProcessAsksEndsTheWait(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		cfg := &rowlock.Config{Hints: rowlock.HintsOff}
		cfg.Reaper.Off = true
		sem := of(t, clienttest.Client(t, s, cfg), 1)
		var released time.Time
		var held *semaphore.Permit
		began := time.Now()
		s.answered = func() {
			if released.IsZero() && time.Since(began) > 5*time.Second { // pauses have grown
				released = time.Now()
				ok(t, held.Release(t.Context()))
			}
		}
		held = take(t, sem, 1)
		waiter := waits(t, t.Context(), sem, 1)
		permit := (<-waiter).p
		if waited := time.Since(released); waited > 0 {
			t.Errorf("granted %s after the release", waited)
		}
		ok(t, permit.Release(t.Context()))
	})
}

func TestASlotIsHandedToTheWaitersOfItsProcessInTheirOrder(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		sem := process(t, s, 1)
		held := take(t, sem, 1)
		all := queued(t, sem, 5)
		asked := s.asked.Load()
		for i, waiter := range all {
			ok(t, held.Release(t.Context()))
			next := granted(t, waiter, 0)
			if next.Slots()[0].Token != held.Slots()[0].Token+1 {
				t.Errorf("waiter %d has the token %d after %d", i, next.Slots()[0].Token, held.Slots()[0].Token)
			}
			if err := context.Cause(held.Context()); err == nil || next.Context().Err() != nil {
				t.Errorf("waiter %d: the last permit ended with %v, and this one with %v", i, err,
					next.Context().Err())
			}
			held = next
		}
		if s.passed.Load() != 5 || s.asked.Load() != asked {
			t.Errorf("%d hand-overs and %d asks for 5 waiters", s.passed.Load(), s.asked.Load()-asked)
		}
		ok(t, held.Release(t.Context()))
		take(t, sem, 1)
	})
}

func TestASlotIsNotHandedOverAfterAResize(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		a, b := process(t, s, 3), process(t, s, 3)
		held := []*semaphore.Permit{take(t, a, 1), take(t, a, 1), take(t, a, 1)}
		waiter := waits(t, t.Context(), a, 1)
		ok(t, b.Resize(t.Context(), 1))
		ok(t, held[0].Release(t.Context()))
		ok(t, held[1].Release(t.Context()))
		stillWaits(t, waiter, time.Minute)
		ok(t, held[2].Release(t.Context()))
		granted(t, waiter, poll)
		full(t, b, 1)
	})
}

// The next holder of a slot that an unanswered try has handed over may have lost it before the
// store could be asked again. The holder before it has lost nothing.
func TestASlotThatAnUnansweredTryHasHandedOverIsNoLoss(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		sem := process(t, s, 1)
		held := take(t, sem, 1)
		waiter := waits(t, t.Context(), sem, 1)
		s.around = func(pass func() ([]lease.Acquired, error)) ([]lease.Acquired, error) {
			s.around = nil
			if made, err := pass(); err != nil || !made[0].Granted {
				t.Error(made, err)
			}
			return []lease.Acquired{{Unknown: true}}, nil
		}
		ok(t, held.Release(t.Context()))
		granted(t, waiter, time.Minute)
	})
}

// The limit changes when the release has chosen its next owner, and before its statement.
func TestASlotIsNotHandedOverIfTheLimitChangesBeforeTheStatement(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		a, b := process(t, s, 2), process(t, s, 2)
		first, second := take(t, a, 1), take(t, a, 1)
		waiter := waits(t, t.Context(), a, 1)
		s.around = func(pass func() ([]lease.Acquired, error)) ([]lease.Acquired, error) {
			ok(t, b.Resize(t.Context(), 1))
			s.around = nil
			return pass()
		}
		ok(t, first.Release(t.Context()))
		stillWaits(t, waiter, time.Minute)
		ok(t, second.Release(t.Context()))
		granted(t, waiter, poll)
		full(t, b, 1)
	})
}

func TestASlotWhoseNextOwnerHasLeftGoesToTheNext(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		sem := process(t, s, 1)
		held := take(t, sem, 1)
		for _, leaves := range []int{0, 1} { // the one that leads, and another one
			ctx, cancel := context.WithCancel(t.Context())
			var all []<-chan got
			for i := range 3 {
				if i == leaves {
					all = append(all, waits(t, ctx, sem, 1))
				} else {
					all = append(all, waits(t, t.Context(), sem, 1))
				}
			}
			s.around = func(pass func() ([]lease.Acquired, error)) ([]lease.Acquired, error) {
				answers, err := pass()
				cancel()
				synctest.Wait()
				return answers, err
			}
			for i, waiter := range all {
				if i == leaves {
					continue
				}
				ok(t, held.Release(t.Context()))
				held = granted(t, waiter, poll)
			}
			if g := <-all[leaves]; g.err == nil {
				t.Errorf("the waiter that left has %+v", g.p)
			}
			s.around = nil
		}
		full(t, sem, 1)
		ok(t, held.Release(t.Context()))
		take(t, sem, 1)
	})
}

// What became of the slot is not known: the waiter is not told that it has it, and it is free soon.
func TestAHandOverWithAnUnknownOutcomeIsResolved(t *testing.T) {
	for name, made := range map[string]bool{"made": true, "not made": false} {
		t.Run(name, func(t *testing.T) {
			withPasser(t, func(t *testing.T, s *passer) {
				sem := process(t, s, 1)
				held := take(t, sem, 1)
				waiter := waits(t, t.Context(), sem, 1)
				s.around = func(pass func() ([]lease.Acquired, error)) ([]lease.Acquired, error) {
					if made {
						_, _ = pass()
					}
					return nil, fmt.Errorf("%w: cut off", lease.ErrUnknown)
				}
				clienttest.WantIs(t, "Release", held.Release(t.Context()), rowlock.ErrUnknown)
				s.around = nil
				next := granted(t, waiter, 10*time.Second)
				full(t, sem, 1)
				ok(t, next.Release(t.Context()))
				take(t, sem, 1)
			})
		})
	}
}

func TestALostSlotIsNotHandedOver(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		sem := process(t, s, 1)
		held := take(t, sem, 1)
		waiter := waits(t, t.Context(), sem, 1)
		_, err := s.Release(t.Context(), leases(t, s, held.Slots()[0]))
		ok(t, err)
		_ = held.Release(t.Context())
		granted(t, waiter, poll)
		full(t, sem, 1)
	})
}

// One process has many callers that want slots all the time.
func TestAProcessThatHandsSlotsOverLeavesThemToOthersInTime(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		a, b := process(t, s, 2), process(t, s, 2)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for ctx.Err() == nil {
					if p, err := a.Acquire(ctx, 1); err == nil {
						time.Sleep(time.Millisecond)
						_ = p.Release(ctx)
					}
				}
			})
		}
		time.Sleep(time.Second)
		if n := s.passed.Load(); n < 1000 {
			t.Errorf("%d hand-overs in 1 s", n)
		}
		began := time.Now()
		for range 20 {
			p, err := b.Acquire(t.Context(), 1)
			ok(t, err)
			time.Sleep(time.Millisecond)
			ok(t, p.Release(t.Context()))
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("another process has waited %s for 20 slots", d)
		}
		stop()
		all.Wait()
	})
}

// A permit of several slots serves several waiters, and what is left is free.
func TestSlotsAreHandedToSeveralWaiters(t *testing.T) {
	withPasser(t, func(t *testing.T, s *passer) {
		sem := process(t, s, 5)
		held := take(t, sem, 5)
		first, second := waits(t, t.Context(), sem, 3), waits(t, t.Context(), sem, 1)
		third := waits(t, t.Context(), sem, 2)
		ok(t, held.Release(t.Context()))
		p, q := granted(t, first, 0), granted(t, second, 0)
		if len(p.Slots()) != 3 || len(q.Slots()) != 1 {
			t.Errorf("%+v and %+v", p.Slots(), q.Slots())
		}
		stillWaits(t, third, time.Second)
		ok(t, q.Release(t.Context()))
		granted(t, third, poll)
		full(t, sem, 1)
	})
}

type caller struct{}

// One waiter asks for another, with its own ctx: whose locks that holds is no business of the
// other's.
func TestASlotHasTheValuesOfItsOwnCall(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		var told []any
		cfg := &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}}
		cfg.Hooks.Acquired = func(ctx context.Context, key string, _ rowlock.Token, _ time.Duration) {
			if key != "k" && key != semaphore.QueueKey("s") {
				told = append(told, ctx.Value(caller{}))
			}
		}
		c := clienttest.Client(t, s, cfg)
		here, there := of(t, c, 3), process(t, s, 3)
		var held []*semaphore.Permit
		var calls []<-chan got
		for range 3 {
			held = append(held, take(t, there, 1))
		}
		k := clienttest.Take(t, c, "k")
		for i := range 3 {
			ctx := context.WithValue(t.Context(), caller{}, i)
			if i == 2 { // the one that asks for the second
				ctx = context.WithValue(k.Context(), caller{}, i)
			}
			calls = append(calls, waits(t, ctx, here, 1))
		}
		var permits []*semaphore.Permit
		for i := range calls {
			ok(t, held[i].Release(t.Context()))
			permits = append(permits, granted(t, calls[i], time.Minute))
			ctx := permits[i].Slots()[0].Lock.Context()
			if told[i] != i || ctx.Value(caller{}) != i {
				t.Errorf("call %d: the hook is told of %v, the slot is of %v", i, told[i], ctx.Value(caller{}))
			}
			if _, err := c.TryLock(ctx, "k", rowlock.Reentrant()); i < 2 && !errors.Is(err, rowlock.ErrHeld) {
				t.Errorf("call %d has the lock of another: %v", i, err)
			}
		}
		for _, p := range permits {
			ok(t, p.Release(t.Context()))
		}
		ok(t, k.Unlock(t.Context()))
	})
}
