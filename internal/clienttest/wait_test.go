package clienttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// The waiter's context ends during a request. The error still names the holder, as far as it is
// known.
func TestWaitCanceledDuringAPollReportsBothReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		var polls atomic.Int32
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if polls.Add(1) < 2 {
				return s.Store.Acquire(ctx, reqs)
			}
			<-ctx.Done()
			return nil, fmt.Errorf("%w: acquire: %w", lease.ErrUnknown, ctx.Err())
		}
		c := Client(t, s, nil)
		Another(t, s.Store, "k", 30*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Lock(ctx, "k")
		WantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded, rowlock.ErrUnknown)
	})
}

// The waiter's context ends during a poll, which then finds the key held.
func TestWaitCanceledDuringAPollThatFindsAHolderReportsBothReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		s.OnAcquire = func(_ context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			time.Sleep(20 * time.Second)
			return s.Store.Acquire(context.Background(), reqs)
		}
		c := Client(t, s, nil)
		Another(t, s.Store, "k", time.Hour)
		for _, patience := range []time.Duration{10 * time.Second, 30 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			_, err := c.Lock(ctx, "k")
			cancel()
			WantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded)
		}
	})
}

func TestAWaiterCanceledAtItsGrantLeavesTheKeyToTheNext(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		ctx, cancel := context.WithCancel(t.Context())
		first := WaitIn(t, ctx, c, "k")
		second := WaitIn(t, t.Context(), c, "k")
		s.OnHandOver = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			s.OnHandOver = nil
			out, err := s.Store.HandOver(ctx, items)
			cancel() // executed, and the answer under way
			synctest.Wait()
			return out, err
		}
		Unlock(t, l)
		WantIs(t, "the first", (<-first).Err, rowlock.ErrHeld, context.Canceled)
		got := <-second
		if got.Err != nil || got.Lock.Token() != l.Token()+2 {
			t.Fatalf("the second has %v, %v", got.Lock, got.Err)
		}
		if r := Record(t, s, "k"); r.Token != got.Lock.Token() || !r.Held {
			t.Errorf("the row is %+v", r)
		}
	})
}

// What is granted to a waiter that has left is released, if no other waits.
func TestAGrantWithoutAWaiterIsReleased(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := WaitIn(t, ctx, c, "k")
		s.OnHandOver = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			out, err := s.Store.HandOver(ctx, items)
			cancel()
			synctest.Wait()
			return out, err
		}
		Unlock(t, l)
		WantIs(t, "Lock", (<-waiting).Err, context.Canceled)
		if IsHeld(t, s, "k") {
			t.Error("the key stays held without a holder")
		}
	})
}

// It is unknown whether the hand-over was executed: neither owner keeps the key, and the waiter
// gets it in the end.
func TestAHandOverOfUnknownOutcomeIsCleanedUp(t *testing.T) {
	for name, executed := range map[string]bool{"executed": true, "not executed": false} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				l := Take(t, c, "k")
				waiting := WaitIn(t, t.Context(), c, "k")
				s.OnHandOver = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
					if executed {
						_, _ = s.Store.HandOver(ctx, items)
					}
					return nil, fmt.Errorf("%w: connection lost", lease.ErrUnknown)
				}
				began := time.Now()
				WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
				got := <-waiting
				if got.Err != nil || got.Lock.Token() <= l.Token() {
					t.Fatalf("the waiter has %v, %v", got.Lock, got.Err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("after %v", took)
				}
				s.OnHandOver = nil
				if err := got.Lock.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Another process took the lease over while its holder believed to have it: a hand-over passes
// nothing on.
func TestALostLeaseIsNotHandedOver(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		waiting := WaitIn(t, t.Context(), c, "k")
		s.Expire("k")
		other := Another(t, s.Store, "k", TTL)
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		if r := Record(t, s, "k"); r.Lease != other {
			t.Fatalf("the row is %+v, want %+v", r, other)
		}
		_, _ = s.Store.Release(t.Context(), []lease.Lease{other})
		if got := <-waiting; got.Err != nil || got.Lock.Token() != other.Token+1 {
			t.Errorf("the waiter has %v, %v", got.Lock, got.Err)
		}
	})
}

// A lost lock is not left to the poller: the next waiter of the process bids as soon as the loss
// is known.
func TestWaitersAreWokenWhenALockIsLost(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k", rowlock.NoRenew())
		waiting := WaitIn(t, t.Context(), c, "k")
		<-l.Context().Done()
		if got := <-waiting; got.Err != nil {
			t.Fatal(got.Err)
		}
		if late := time.Since(began(l)) - TTL; late > 5*time.Millisecond {
			t.Errorf("%v after the lease's end", late)
		}
	})
}

func began(l *rowlock.Lock) time.Time { return l.Deadline().Add(Margin - TTL) }

// A process that wants the key again and again, from many goroutines or from one, does not keep
// another process out.
func TestAProcessDoesNotKeepAKeyForItself(t *testing.T) {
	for name, greedy := range map[string]int{"one": 1, "two": 2, "many": 16} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				here, there := Client(t, s, nil), Client(t, s, nil)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range greedy {
					wg.Go(func() {
						for ctx.Err() == nil {
							if l, err := here.Lock(ctx, "k"); err == nil {
								time.Sleep(time.Millisecond)
								_ = l.Unlock(ctx)
							}
						}
					})
				}
				for range 5 {
					time.Sleep(time.Second)
					began := time.Now()
					l, err := there.Lock(t.Context(), "k")
					if err != nil {
						t.Fatal(err)
					}
					if waited := time.Since(began); waited > 600*time.Millisecond {
						t.Errorf("waited for %v", waited)
					}
					_ = l.Unlock(t.Context())
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// Waiters of a store that cannot hand over are served too.
func TestWaitingNeedsNoAbilities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, Bare{memstore.New()}, nil)
		l := Take(t, c, "k")
		q := Queue(t, c, "k", 20, time.Millisecond)
		Unlock(t, l)
		q.Served.Wait()
		if !slices.IsSorted(q.Order) || len(q.Order) != 20 {
			t.Errorf("served in the order %v", q.Order)
		}
	})
}

func TestCloseEndsEveryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		c := Client(t, s, nil)
		Take(t, c, "k")
		Another(t, s.Store, "other", time.Hour)
		var ends []<-chan Waited
		for i := range 40 {
			ends = append(ends, WaitIn(t, t.Context(), c, []string{"k", "other"}[i%2]))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, end := range ends {
			if got := <-end; !errors.Is(got.Err, rowlock.ErrClosed) {
				t.Errorf("got %v, %v", got.Lock, got.Err)
			}
		}
		if IsHeld(t, s, "k") {
			t.Error("the key is still held")
		}
	})
}
