package semaphore_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/semaphore"
)

// panicking releases with hooks that panic while bad is true. A waiter that happens to ask at that
// moment gets the slot itself: then it is tried again.
func panicking(t *testing.T, hooks rowlock.Hooks, bad *atomic.Bool) {
	for range 5 {
		if panickedOnce(t, hooks, bad) || t.Failed() {
			return
		}
	}
	t.Error("no panic")
}

func panickedOnce(t *testing.T, hooks rowlock.Hooks, bad *atomic.Bool) (panicked bool) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		cfg := &rowlock.Config{Hooks: hooks, Logger: slog.New(slog.DiscardHandler)}
		cfg.Reaper.Off = true
		sem := of(t, clienttest.Client(t, s, cfg), 1)
		held := take(t, sem, 1)
		a := waits(t, t.Context(), sem, 1)
		bad.Store(true)
		func() {
			defer func() { panicked = recover() != nil }()
			_ = held.Release(t.Context())
		}()
		bad.Store(false)
		select {
		case g := <-a:
			ok(t, g.err)
			ok(t, g.p.Release(t.Context()))
		case <-time.After(time.Hour):
			t.Error("the waiter still waits after an hour")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if p, err := process(t, s, 1).Acquire(ctx, 1); err != nil {
				t.Errorf("another process, an hour later: %v", err)
			} else {
				_ = p.Release(ctx)
			}
			synctest.Wait()
		}
	})
	return panicked
}

func TestAPanicBeforeAHandOverLeavesTheWaiterInItsPlace(t *testing.T) {
	var bad atomic.Bool
	panicking(t, rowlock.Hooks{Releasing: func(_ context.Context, key string, _ rowlock.Token) {
		if bad.Load() && key != semaphore.QueueKey("s") { // or a waiter that leaves the line
			panic("out of luck")
		}
	}}, &bad)
}

func TestAPanicAfterAHandOverLosesNoSlot(t *testing.T) {
	var bad atomic.Bool
	panicking(t, rowlock.Hooks{Acquired: func(context.Context, string, rowlock.Token, time.Duration) {
		if bad.Load() && bytes.Contains(debug.Stack(), []byte("PassSlots")) {
			panic("out of luck")
		}
	}}, &bad)
}

// The slot is the waiter's by then, and its call does not know.
func TestAPanicAfterAReleaseLosesNoSlot(t *testing.T) {
	var bad atomic.Bool
	panicking(t, rowlock.Hooks{Released: func(_ context.Context, key string, _ rowlock.Token, _ time.Duration) {
		if key != semaphore.QueueKey("s") && bad.Swap(false) {
			panic("out of luck")
		}
	}}, &bad)
}

func TestAPanicOfTheLeaderLeavesTheOthersTheirPlaces(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		var bad atomic.Bool
		cfg := &rowlock.Config{Logger: slog.New(slog.DiscardHandler)}
		cfg.Hooks.Contended = func(_ context.Context, key string, _ *rowlock.HeldError) {
			if bad.Swap(false) {
				panic("out of luck")
			}
		}
		cfg.Reaper.Off = true
		sem := of(t, clienttest.Client(t, s, cfg), 1)
		other := process(t, s, 1)
		held := take(t, other, 1)
		ctxA, cancelA := context.WithCancel(t.Context())
		_ = waits(t, ctxA, sem, 1) // leads
		b := waits(t, t.Context(), sem, 1)
		go func() {
			defer func() { _ = recover() }()
			_, _ = sem.Acquire(t.Context(), 1)
		}()
		synctest.Wait()
		cancelA() // the last one leads
		synctest.Wait()
		bad.Store(true)
		time.Sleep(5 * time.Second)
		if bad.Load() {
			t.Fatal("hook not called")
		}
		ok(t, held.Release(t.Context()))
		select {
		case g := <-b:
			ok(t, g.err)
			ok(t, g.p.Release(t.Context()))
		case <-time.After(time.Hour):
			t.Error("the waiter still waits after an hour, and the slot is free")
		}
	})
}

// TestAPanicForAWaiterThatHasLeftKeepsNoSlotFromOthers: the leader is granted slots for two
// waiters, of which the first has left meanwhile, and the hook of its release panics. The other
// call is the leader's own, which panics too.
func TestAPanicForAWaiterThatHasLeftKeepsNoSlotFromOthers(t *testing.T) {
	bubble(t, func(t *testing.T, s *clienttest.Script) {
		var bad atomic.Bool
		var granted atomic.Int64
		leaves, leave := context.WithCancel(t.Context())
		cfg := &rowlock.Config{Logger: slog.New(slog.DiscardHandler)}
		cfg.Reaper.Off = true
		cfg.Hooks.Acquired = func(_ context.Context, key string, _ rowlock.Token, _ time.Duration) {
			if key != semaphore.QueueKey("s") && granted.Add(1) == 2 { // the first was asked for alone
				leave()
				synctest.Wait()
				bad.Store(true)
			}
		}
		cfg.Hooks.Released = func(_ context.Context, key string, _ rowlock.Token, _ time.Duration) {
			if key != semaphore.QueueKey("s") && bad.Swap(false) {
				panic("out of luck")
			}
		}
		sem, other := of(t, clienttest.Client(t, s, cfg), 4), process(t, s, 4)
		held := take(t, other, 4)
		first, endFirst := context.WithCancel(t.Context())
		a := waits(t, first, sem, 1)
		alone := waits(t, t.Context(), sem, 1)
		b := waits(t, leaves, sem, 1)
		c := waits(t, t.Context(), sem, 1)
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = sem.Acquire(t.Context(), 1)
		}()
		synctest.Wait()
		endFirst()
		<-a // the last one leads
		synctest.Wait()
		ok(t, held.Release(t.Context()))
		<-b
		if p := <-panicked; p == nil {
			t.Fatal("no panic")
		}
		for _, waiter := range []<-chan got{alone, c} {
			g := <-waiter
			ok(t, g.err)
			ok(t, g.p.Release(t.Context()))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		p, err := other.Acquire(ctx, 4)
		if err != nil {
			t.Fatalf("another process, an hour later: %v", err)
		}
		ok(t, p.Release(t.Context()))
	})
}
