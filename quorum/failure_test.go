package quorum

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// inBubble runs f with three members, and then checks that nothing is left running.
func inBubble(t *testing.T, n int, f func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, n)
		f(t, b)
		for _, m := range b.at {
			close(m.free)
		}
		_ = b.Close()
	})
}

var failing = map[string]mode{"down": down, "hung": hung, "mute": mute, "stuck": stuck}

func TestAMinorityThatFailsDelaysNothingForLong(t *testing.T) {
	for name, mode := range failing {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bench) {
				for at := range b.at { // whichever it is
					b.at[at].be(mode)
					began := time.Now()
					l := b.take("k")
					if got, err := b.renew(l); err != nil || got != lease.Extended {
						t.Errorf("renew: %v, %v", got, err)
					}
					if _, got, err := b.try(b.Store, "k"); err != nil || got.Granted || got.Holder.Remaining <= 0 {
						t.Errorf("another: %+v, %v", got, err)
					}
					rows, err := b.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
					if err != nil || len(rows) != 1 || !rows[0].Held || rows[0].Lease != l {
						t.Errorf("inspect: %+v, %v", rows, err)
					}
					if got := b.release(l); got.Gone {
						t.Error("released and said to be gone")
					}
					if took := time.Since(began); took > 100*time.Millisecond {
						t.Errorf("5 calls took %v", took)
					}
					b.at[at].be(well)
					time.Sleep(2 * ttl) // until what it was left with has gone
				}
			})
		})
	}
}

func TestWithoutAMajorityNothingIsGranted(t *testing.T) {
	for name, mode := range failing {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bench) {
				held := b.take("held")
				b.at[0].be(mode)
				b.at[2].be(mode)
				began := time.Now()
				l, got, err := b.try(b.Store, "k")
				if err == nil || got.Granted {
					t.Fatalf("granted by one of three: %+v, %v", got, err)
				}
				if errors.Is(err, lease.ErrUnknown) != (mode != down) {
					t.Errorf("the outcome is unknown exactly if a member may have granted it: %v", err)
				}
				if text := err.Error(); !strings.Contains(text, `"k": 1 of 3 members answered`) || strings.Contains(text, "\n") {
					t.Errorf("the error does not say who answered: %q", text)
				}
				if _, err := b.renew(held); !errors.Is(err, lease.ErrUnknown) {
					t.Errorf("renew: %v, want lease.ErrUnknown", err)
				}
				if _, err := b.Release(t.Context(), []lease.Lease{held}); !errors.Is(err, lease.ErrUnknown) {
					t.Errorf("release: %v, want lease.ErrUnknown", err)
				}
				if _, err := b.Inspect(t.Context(), lease.Filter{}); err == nil {
					t.Error("one of three members is a listing")
				}
				if took := time.Since(began); took > 5*(2*time.Second)*9/8+time.Second {
					t.Errorf("calls without a majority took %v", took)
				}
				if b.at[1].holder("k") == l.Owner {
					t.Error("the vote of the member that is well was not released")
				}
			})
		})
	}
}

// What a member has granted without being heard must not lock the key at it for a TTL.
func TestEveryMemberIsReleasedAlsoOneWhoseAnswerWasLost(t *testing.T) {
	for name, mode := range map[string]mode{"mute": mute, "tardy": tardy, "asleep": asleep, "hung": hung} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bench) {
				b.at[2].delay = 3 * time.Second
				b.at[2].be(mode)
				l := b.take("k")
				b.release(l)
				b.at[2].be(well)
				time.Sleep(2*b.at[2].delay + restMax)
				if n := b.votes(l); n != 0 {
					t.Errorf("%d members still have a lease that was released", n)
				}
			})
		})
	}
}

func TestAFailedAttemptIsReleasedAtMembersThatComeBack(t *testing.T) {
	for name, mode := range map[string]mode{"mute": mute, "tardy": tardy, "asleep": asleep} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 5, func(t *testing.T, b *bench) {
				for _, m := range b.at[2:] {
					m.delay = 4 * time.Second
					m.be(mode)
				}
				l, got, err := b.try(b.Store, "k")
				if err == nil || got.Granted {
					t.Fatalf("granted by two of five: %+v, %v", got, err)
				}
				for _, m := range b.at[2:] {
					m.be(well)
				}
				time.Sleep(10 * time.Second)
				if n := b.votes(l); n != 0 {
					t.Errorf("%d members still have a lease that was not granted", n)
				}
				b.take("k")
			})
		})
	}
}

func TestACallerThatLeavesLeavesNothingBehind(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		for _, m := range b.at {
			m.delay = time.Second
			m.be(asleep)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		q := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
		began := time.Now()
		_, err := b.Acquire(ctx, []lease.AcquireRequest{q})
		if !errors.Is(err, lease.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want lease.ErrUnknown and the context's error", err)
		}
		if took := time.Since(began); took > 150*time.Millisecond {
			t.Errorf("the caller was kept for %v", took)
		}
		b.Settle(t.Context())
		if n := b.votes(lease.Lease{Key: "k", Owner: q.Owner}); n != 0 {
			t.Errorf("%d members still have what the caller did not wait for", n)
		}
	})
}

func TestALostMajorityIsToldAndItsRestReleased(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		l := b.take("k")
		b.at[0].Expire("k")
		if got, err := b.renew(l); err != nil || got != lease.Extended {
			t.Fatalf("one of three lost: %v, %v", got, err)
		}
		b.at[1].Expire("k")
		if got, err := b.renew(l); err != nil || got != lease.Lost {
			t.Fatalf("two of three lost: %v, %v", got, err)
		}
		b.Settle(t.Context())
		if n := b.votes(l); n != 0 {
			t.Errorf("%d members keep a lost lease from others", n)
		}
	})
}

// One member has the lease, one has lost it, and the third may have it: that is no loss yet.
func TestALeaseIsNotLostWhileAMajorityMayHaveIt(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		l := b.take("k")
		b.at[0].Expire("k")
		for name, mode := range map[string]mode{"down": down, "hung": hung, "mute": mute} {
			b.at[1].be(mode)
			if got, err := b.renew(l); !errors.Is(err, lease.ErrUnknown) {
				t.Errorf("%s: %v, %v; want lease.ErrUnknown", name, got, err)
			}
			b.at[1].be(well)
			if got, err := b.renew(l); err != nil || got != lease.Extended {
				t.Errorf("%s, and well again: %v, %v", name, got, err)
			}
		}
	})
}

// A request for no time bounded the calls for all others of its batch to a millisecond.
func TestARequestForNoTimeTakesNoneFromOthers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		for _, f := range b.at {
			f.be(asleep)
			f.delay = 20 * time.Millisecond
		}
		bad := lease.AcquireRequest{Key: "bad", Owner: lease.NewOwner()}
		good := lease.AcquireRequest{Key: "good", Owner: lease.NewOwner(), TTL: ttl}
		got, err := b.Acquire(context.Background(), []lease.AcquireRequest{bad, good})
		if err != nil || got[0].Granted || !got[1].Granted {
			t.Errorf("%+v, %v", got, err)
		}
		for _, f := range b.at {
			f.be(well)
		}
	})
}

// A round has a bound of the quorum's. A caller whose own ctx goes on took its end for that of ctx.
func TestTheEndOfARoundIsNoDeadlineOfTheCaller(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		l := b.take("k")
		for _, f := range b.at {
			f.be(hung)
		}
		_, _, acquire := b.try(b.Store, "other")
		_, renew := b.renew(l)
		_, release := b.Release(context.Background(), []lease.Lease{l})
		_, inspect := b.Inspect(context.Background(), lease.Filter{})
		for what, err := range map[string]error{
			"acquire": acquire, "renew": renew, "release": release, "inspect": inspect,
		} {
			if !errors.Is(err, lease.ErrUnknown) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, f := range b.at {
			f.be(well)
		}
	})
}

// A call returns when a majority has answered. The next one must not overtake it at the third.
func TestCallsForAKeyStayInOrderAtASlowMember(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		slow := b.at[2]
		slow.be(tardy)
		takes := func(d time.Duration) {
			slow.mu.Lock()
			defer slow.mu.Unlock()
			slow.delay = d
		}
		takes(200 * time.Millisecond)
		first := b.take("k")
		synctest.Wait() // the acquire is at the member
		takes(100 * time.Millisecond)
		b.release(first)
		synctest.Wait()
		takes(300 * time.Millisecond)
		next := b.take("k")
		b.Settle(t.Context())
		if n := b.votes(next); n != 3 || next.Token != first.Token+1 {
			t.Errorf("token %d after %d has %d votes of three members that are well",
				next.Token, first.Token, n)
		}
	})
}

// A member that is down when it is released, and comes back within the TTL, is released then.
func TestAReleaseReachesAMemberThatWasDown(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		l := b.take("k")
		b.at[1].be(down)
		b.release(l)
		time.Sleep(ttl / 3)
		b.at[1].be(well)
		time.Sleep(restMax)
		if n := b.votes(l); n != 0 {
			t.Errorf("%d members still have it", n)
		}
	})
}

func TestTheCleanerStopsWhenTheLeaseHasExpired(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		l := b.take("k")
		b.at[1].be(down)
		b.release(l)
		time.Sleep(ttl + window + 2*restMax)
		n := b.at[1].calls("release")
		time.Sleep(time.Hour)
		if more := b.at[1].calls("release") - n; more != 0 {
			t.Errorf("%d more releases of a lease that has expired", more)
		}
		d := &b.members[1].dirt
		d.mu.Lock()
		defer d.mu.Unlock()
		if left := len(d.left); left != 0 {
			t.Errorf("%d leases are remembered", left)
		}
	})
}

// With -race this test fails where Close may wait for the cleaners while one is started.
func TestAnAnswerThatComesDuringCloseStartsNoCleaner(t *testing.T) {
	for range 300 {
		b := newBench(t, 3)
		var answers sync.WaitGroup
		for _, m := range b.members {
			answers.Go(func() { b.soil(m, lease.Lease{Key: "k", Owner: lease.NewOwner()}) })
		}
		_ = b.Close()
		answers.Wait()
		b.soil(b.members[0], lease.Lease{Key: "l", Owner: lease.NewOwner()})
		b.work.Wait() // returns, or a cleaner has outlived Close
	}
}
