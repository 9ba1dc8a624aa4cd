package rowlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// queued has n goroutines wait for key, one after the other, and notes who gets it in which order. Each holds it for so long.
type queued struct {
	mu     sync.Mutex
	got    []int
	tokens []int64
	wg     sync.WaitGroup
}

func queue(t *testing.T, c *rowlock.Client, key string, n int, hold time.Duration) *queued {
	t.Helper()
	q := &queued{}
	for i := range n {
		q.wg.Go(func() {
			l, err := c.Lock(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			q.mu.Lock()
			q.got, q.tokens = append(q.got, i), append(q.tokens, l.Token())
			q.mu.Unlock()
			time.Sleep(hold)
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // until it stands in the line
	}
	return q
}

func TestWaitersOfAClientAreServedInOrderByHandOver(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		const n = 100
		l := take(t, c, "k")
		q := queue(t, c, "k", n, 0)
		acquires, _, _ := s.asked()
		unlock(t, l)
		q.wg.Wait()
		if !slices.IsSorted(q.got) || len(q.got) != n {
			t.Errorf("served in the order %v", q.got)
		}
		for i, token := range q.tokens {
			if want := l.Token() + int64(i) + 1; token != want {
				t.Fatalf("waiter %d has token %d, want %d", i, token, want)
			}
		}
		more, _, releases := s.asked()
		if len(s.passes) != n || releases != 1 || more != acquires {
			t.Errorf("%d hand-overs, %d releases, %d acquires for %d waiters", len(s.passes), releases, more-acquires, n)
		}
	})
}

// What a thousand waiters ask of the database does not depend on how many they are, or how many keys they wait for.
func TestWaitersCostNothing(t *testing.T) {
	for name, keys := range map[string]int{"one key": 1, "a thousand keys": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				c := client(t, s, nil)
				for i := range keys {
					another(t, s.Store, fmt.Sprint("k", i), time.Hour)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var wg sync.WaitGroup
				for i := range 1000 {
					wg.Go(func() { _, _ = c.Lock(ctx, fmt.Sprint("k", i%keys)) })
				}
				synctest.Wait()
				if bids, _, _ := s.asked(); bids != keys {
					t.Errorf("%d bids of 1000 waiters for %d keys", bids, keys)
				}
				time.Sleep(10 * time.Second) // until the holds are old
				bids, _, _ := s.asked()
				looks := s.looked()
				time.Sleep(100 * time.Second)
				more, _, _ := s.asked()
				if n := s.looked() - looks + more - bids; n > 500 {
					t.Errorf("%d statements in 100 s", n)
				}
				if n := s.looked() - looks; n < 300 {
					t.Errorf("only %d looks in 100 s", n)
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// A key that another process holds is taken soon after it came free, whatever the hold was: a look comes after a quarter of it.
func TestAWaiterFindsAKeyThatCameFreeElsewhere(t *testing.T) {
	for _, hold := range []time.Duration{5 * time.Millisecond, 100 * time.Millisecond, time.Second, 20 * time.Second} {
		bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
			l := another(t, s.Store, "k", time.Hour)
			waiting := waitIn(t, t.Context(), c, "k")
			time.Sleep(hold)
			_, _ = s.Store.Release(t.Context(), []lease.Lease{l})
			freed := time.Now()
			got := <-waiting
			if got.err != nil {
				t.Fatal(got.err)
			}
			if late, most := time.Since(freed), min(max(hold/2, 12*time.Millisecond), 280*time.Millisecond); late > most {
				t.Errorf("after a hold of %v it was taken %v late", hold, late)
			}
		})
	}
}

// A holder has died; its lease ends at a time that is known.
func TestAWaiterTakesAnExpiredLeaseAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		began := time.Now()
		another(t, s.Store, "k", ttl)
		if _, err := c.Lock(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began) - ttl; late > 5*time.Millisecond {
			t.Errorf("%v after it expired", late)
		}
	})
}

func TestAWaiterCancelledAtItsGrantLeavesTheKeyToTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		ctx, cancel := context.WithCancel(t.Context())
		first := waitIn(t, ctx, c, "k")
		second := waitIn(t, t.Context(), c, "k")
		s.pass = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			s.pass = nil
			out, err := s.Store.HandOver(ctx, items)
			cancel() // executed, and the answer under way
			synctest.Wait()
			return out, err
		}
		unlock(t, l)
		wantIs(t, "the first", (<-first).err, rowlock.ErrHeld, context.Canceled)
		got := <-second
		if got.err != nil || got.l.Token() != l.Token()+2 {
			t.Fatalf("the second has %v, %v", got.l, got.err)
		}
		if r := record(t, s, "k"); r.Token != got.l.Token() || !r.Held {
			t.Errorf("the row is %+v", r)
		}
	})
}

// Nobody else waits: what was granted to one who has gone is given back.
func TestAGrantThatNobodyWantsIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := waitIn(t, ctx, c, "k")
		s.pass = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			out, err := s.Store.HandOver(ctx, items)
			cancel()
			synctest.Wait()
			return out, err
		}
		unlock(t, l)
		wantIs(t, "Lock", (<-waiting).err, context.Canceled)
		if isHeld(t, s, "k") {
			t.Error("the key is held by nobody")
		}
	})
}

// The hand-over was or was not executed and nobody knows: neither owner keeps the key, and the waiter gets it in the end.
func TestAHandOverOfUnknownOutcomeIsCleanedUp(t *testing.T) {
	for name, executed := range map[string]bool{"executed": true, "not executed": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
				l := take(t, c, "k")
				waiting := waitIn(t, t.Context(), c, "k")
				s.pass = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
					if executed {
						_, _ = s.Store.HandOver(ctx, items)
					}
					return nil, fmt.Errorf("%w: connection lost", lease.ErrUnknown)
				}
				began := time.Now()
				wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
				got := <-waiting
				if got.err != nil || got.l.Token() <= l.Token() {
					t.Fatalf("the waiter has %v, %v", got.l, got.err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("after %v", took)
				}
				s.pass = nil
				if err := got.l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The lease was taken over by another process while its holder thought to have it: a hand-over gives nothing away.
func TestALostLeaseIsNotHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		waiting := waitIn(t, t.Context(), c, "k")
		s.Expire("k")
		other := another(t, s.Store, "k", ttl)
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		if r := record(t, s, "k"); r.Lease != other {
			t.Fatalf("the row is %+v, want %+v", r, other)
		}
		_, _ = s.Store.Release(t.Context(), []lease.Lease{other})
		if got := <-waiting; got.err != nil || got.l.Token() != other.Token+1 {
			t.Errorf("the waiter has %v, %v", got.l, got.err)
		}
	})
}

// A lock that is lost is not left to the poller: the next of the process bids as soon as it is known.
func TestWaitersAreCalledWhenALockIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k", rowlock.NoRenew())
		waiting := waitIn(t, t.Context(), c, "k")
		<-l.Context().Done()
		if got := <-waiting; got.err != nil {
			t.Fatal(got.err)
		}
		if late := time.Since(began(l)) - ttl; late > 5*time.Millisecond {
			t.Errorf("%v after the lease's end", late)
		}
	})
}

func began(l *rowlock.Lock) time.Time { return l.Deadline().Add(margin - ttl) }

// A process that wants the key again and again, from many goroutines or from one, does not keep another out.
func TestAProcessDoesNotKeepAKeyForItself(t *testing.T) {
	for name, greedy := range map[string]int{"one": 1, "two": 2, "many": 16} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				here, there := client(t, s, nil), client(t, s, nil)
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

// A store that cannot hand over serves waiters all the same.
func TestWaitingNeedsNoAbilities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, bare{memstore.New()}, nil)
		l := take(t, c, "k")
		q := queue(t, c, "k", 20, time.Millisecond)
		unlock(t, l)
		q.wg.Wait()
		if !slices.IsSorted(q.got) || len(q.got) != 20 {
			t.Errorf("served in the order %v", q.got)
		}
	})
}

func unlock(t *testing.T, l *rowlock.Lock) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// bare hides what a store can do beyond the least.
type bare struct{ lease.Store }

func TestCloseEndsEveryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		c := client(t, s, nil)
		take(t, c, "k")
		another(t, s.Store, "other", time.Hour)
		var ends []<-chan waited
		for i := range 40 {
			ends = append(ends, waitIn(t, t.Context(), c, []string{"k", "other"}[i%2]))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, end := range ends {
			if got := <-end; !errors.Is(got.err, rowlock.ErrClosed) {
				t.Errorf("got %v, %v", got.l, got.err)
			}
		}
		if isHeld(t, s, "k") {
			t.Error("the key is still held")
		}
	})
}

func TestWaitingIsShown(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k", rowlock.Note("nightly-report on web-3"))
		waitIn(t, t.Context(), c, "k", rowlock.Note("first"))
		waitIn(t, t.Context(), c, "k", rowlock.Note("second"))
		var mu sync.Mutex
		var shown []rowlock.Waiting
		waitIn(t, t.Context(), c, "k", rowlock.OnWait(func(w rowlock.Waiting) {
			mu.Lock()
			defer mu.Unlock()
			shown = append(shown, w)
		}))
		last := func() rowlock.Waiting {
			mu.Lock()
			defer mu.Unlock()
			if len(shown) == 0 {
				return rowlock.Waiting{}
			}
			return shown[len(shown)-1]
		}
		time.Sleep(time.Second)
		if w := last(); w.Ahead != 2 || w.Holder != "nightly-report on web-3" || w.Remaining <= 0 || w.Since <= 0 {
			t.Errorf("shown %+v", w)
		}
		_ = l.Unlock(t.Context())
		time.Sleep(time.Second)
		if w := last(); w.Ahead != 1 || w.Holder != "first" {
			t.Errorf("then shown %+v", w)
		}
	})
}
