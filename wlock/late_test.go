package wlock_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

const ttl = 20 * time.Second

// bed is a cluster of one node, in a bubble of time, with two processes.
type bed struct {
	*testing.T
	c        *wlocktest.Cluster
	n        *wlocktest.Node
	s, other *wlock.Store
}

func inBubble(t *testing.T, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := wlocktest.New(wlocktest.Options{Nodes: 1, Groups: 2}, cluster)
		defer c.Close()
		cfg := config(c)
		cfg.Groups = 2
		b := &bed{T: t, c: c, n: c.Node(1)}
		for _, s := range []**wlock.Store{&b.s, &b.other} {
			*s = open(t, cfg)
			defer (*s).Close()
		}
		f(b)
	})
}

// faults has the first requests of a type meet these faults, one after the other.
func (b *bed) faults(of frame.Type, list ...wlocktest.Fault) {
	var met atomic.Int64
	b.n.Fault(func(q *frame.Request) wlocktest.Fault {
		if i := met.Load(); q.Type == of && int(i) < len(list) {
			met.Add(1)
			return list[i]
		}
		return wlocktest.None
	})
}

// hasty asks with little time, and wants the outcome to be unknown.
func (b *bed) hasty(q lease.AcquireRequest) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Second)
	defer cancel()
	if a, err := b.s.Acquire(ctx, []lease.AcquireRequest{q}); !errors.Is(err, lease.ErrUnknown) {
		b.Fatalf("%+v, %v, want the outcome to be unknown", a, err)
	}
}

func (b *bed) acquire(s lease.Store, q lease.AcquireRequest) lease.Acquired {
	b.Helper()
	a, err := s.Acquire(b.Context(), []lease.AcquireRequest{q})
	if err != nil {
		b.Fatal(err)
	}
	return a[0]
}

func (b *bed) renew(l lease.Lease, want lease.RenewOutcome) {
	b.Helper()
	if a, err := b.s.Renew(b.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}}); err != nil || a[0].Outcome != want {
		b.Errorf("renew: %+v, %v, want %v", a, err, want)
	}
}

func (b *bed) release(l lease.Lease, gone bool) {
	b.Helper()
	if a, err := b.s.Release(b.Context(), []lease.Lease{l}); err != nil || a[0].Gone != gone {
		b.Errorf("release: %+v, %v, want gone %t", a, err, gone)
	}
}

// held checks whose the key is, by the log.
func (b *bed) held(want lease.Owner) {
	b.Helper()
	synctest.Wait()
	owner, _, held := b.c.Held(wire("k"))
	if lease.Owner(owner) != want || held == want.IsZero() {
		b.Errorf("the key is held by %x (%t), want %x", owner, held, want)
	}
}

func asks() lease.AcquireRequest {
	return lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
}

func TestAGrantThatComesAfterItsCallerHasLeftIsReleased(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.faults(frame.Acquire, wlocktest.Hold)
		b.hasty(asks())
		b.n.Let()
		b.held(lease.Owner{})
	})
}

// The late grant is the newest of a lease that its owner holds by now: to release it would let
// another owner in.
func TestALateGrantOfAnOwnerThatHoldsTheKeyIsNotReleased(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.faults(frame.Acquire, wlocktest.Hold)
		q := asks()
		b.hasty(q)
		a := b.acquire(b.s, q)
		if !a.Granted || !a.Unknown {
			b.Fatalf("%+v, want granted, and an earlier try unknown", a)
		}
		b.n.Let()
		b.held(q.Owner)
		if again := b.acquire(b.s, q); again.Token != a.Token {
			b.Errorf("the token is told as %d, and was %d", again.Token, a.Token)
		}
		l := lease.Lease{Key: "k", Owner: q.Owner, Token: a.Token}
		b.renew(l, lease.Extended)
		b.release(l, false)
		b.held(lease.Owner{})
	})
}

// The answer to the later request, with the smaller token, comes last.
func TestALateGrantWaitsForTheCallThatIsUnderWay(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.faults(frame.Acquire, wlocktest.Hold, wlocktest.HoldAnswer)
		q := asks()
		b.hasty(q)
		time.AfterFunc(time.Second, b.n.Let)
		a := b.acquire(b.s, q)
		if !a.Granted {
			b.Fatalf("%+v", a)
		}
		b.held(q.Owner)
		if other := b.acquire(b.other, asks()); other.Granted {
			b.Error("another owner has the key as well")
		}
		b.release(lease.Lease{Key: "k", Owner: q.Owner, Token: a.Token}, false)
		b.held(lease.Owner{})
	})
}

// The answer is lost for good: the token that the store knows is dead, and the lease is not.
func TestALeaseIsReleasedThoughALateTryHasChangedItsToken(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.faults(frame.Acquire, wlocktest.Hold)
		q := asks()
		b.hasty(q)
		a := b.acquire(b.s, q)
		b.n.Mangle(func([]byte) []byte { return nil })
		b.n.Let()
		b.n.Mangle(nil)
		b.held(q.Owner)
		b.release(lease.Lease{Key: "k", Owner: q.Owner, Token: a.Token}, false)
		b.held(lease.Owner{})
	})
}

func TestAReleaseByOwnerFindsWhatALostAnswerHasLeft(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.faults(frame.Acquire, wlocktest.LoseAfter)
		q := asks()
		b.hasty(q)
		b.held(q.Owner)
		// What a server says is no proof.
		b.faults(frame.Get, slices.Repeat([]wlocktest.Fault{wlocktest.Fail}, 1000)...)
		b.release(lease.Lease{Key: "k", Owner: q.Owner}, false)
		b.held(lease.Owner{})
	})
}

// An extension that comes when the holder has stopped may be a lock taken anew.
func TestAnExtensionThatComesTooLateIsALossAndIsReleased(t *testing.T) {
	inBubble(t, func(b *bed) {
		q := asks()
		l := lease.Lease{Key: "k", Owner: q.Owner, Token: b.acquire(b.s, q).Token}
		b.faults(frame.Acquire, wlocktest.Hold)
		time.Sleep(ttl - time.Second)
		if a, err := b.s.Renew(b.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}}); !errors.Is(err, lease.ErrUnknown) {
			b.Fatalf("%+v, %v", a, err)
		}
		b.n.Let()
		b.held(lease.Owner{})
		b.renew(l, lease.Lost)
		b.release(l, true)
	})
}

// relies reports whether the store shows the key as its own owner's.
func (b *bed) relies(owner lease.Owner) bool {
	b.Helper()
	rows, err := b.s.Inspect(b.Context(), lease.Filter{Keys: []string{"k"}})
	if err != nil {
		b.Fatal(err)
	}
	return len(rows) == 1 && rows[0].Owner == owner
}

// A try with a short TTL that is carried out after one with a long TTL would make the lease short.
func TestNoLeaseIsLongerThanATryWhoseOutcomeIsUnknown(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.faults(frame.Acquire, wlocktest.Hold)
		q := asks()
		q.TTL = 5 * time.Second
		b.hasty(q)
		l := lease.Lease{Key: "k", Owner: q.Owner, Token: b.acquire(b.s, q).Token}
		q.TTL = time.Minute
		for name, err := range map[string]error{
			"acquire": second(b.s.Acquire(b.Context(), []lease.AcquireRequest{q})),
			"renew":   second(b.s.Renew(b.Context(), []lease.RenewRequest{{Lease: l, TTL: q.TTL}})),
		} {
			if !errors.Is(err, lease.ErrBusy) {
				b.Errorf("%s: %v", name, err)
			}
		}
	})
}

func second[A any](_ A, err error) error { return err }

// As MinHold asks for it: the request is carried out, and its answer is lost.
func TestALeaseThatMayHaveBeenShortenedIsReliedOnForTheShorterTime(t *testing.T) {
	inBubble(t, func(b *bed) {
		q := asks()
		q.TTL = time.Minute
		l := lease.Lease{Key: "k", Owner: q.Owner, Token: b.acquire(b.s, q).Token}
		b.faults(frame.Acquire, wlocktest.LoseAfter)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, _ = b.s.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: 3 * time.Second}})
		b.held(q.Owner)
		time.Sleep(2*time.Second + 2*time.Millisecond)
		if b.held(lease.Owner{}); b.relies(q.Owner) {
			b.Error("the holder relies on a lock that has expired")
		}
	})
}

// A caller counts the TTL from the request that was answered, also if that is a repetition.
func TestARepeatedRequestExtendsTheLease(t *testing.T) {
	inBubble(t, func(b *bed) {
		q := asks()
		a := b.acquire(b.s, q)
		time.Sleep(ttl / 2)
		if again := b.acquire(b.s, q); !again.Granted || again.Token != a.Token {
			b.Fatalf("%+v after %+v", again, a)
		}
		time.Sleep(ttl - time.Second)
		b.held(q.Owner)
		if !b.relies(q.Owner) {
			b.Error("the lease has ended")
		}
	})
}

// Each fault of the first request of each kind is overcome within the call.
func TestEveryCallOvercomesTheLossOfOneRequestOrAnswer(t *testing.T) {
	faults := map[string]wlocktest.Fault{
		"lost before": wlocktest.LoseBefore, "lost after": wlocktest.LoseAfter, "cut before": wlocktest.CutBefore,
		"cut after": wlocktest.CutAfter, "failed": wlocktest.Fail, "failed after": wlocktest.FailAfter,
	}
	for name, fault := range faults {
		inBubble(t, func(b *bed) {
			q := asks()
			b.faults(frame.Acquire, fault)
			a := b.acquire(b.s, q)
			l := lease.Lease{Key: "k", Owner: q.Owner, Token: a.Token}
			b.held(q.Owner)
			b.faults(frame.Acquire, fault)
			b.renew(l, lease.Extended)
			b.faults(frame.Get, fault)
			if rows, err := b.other.Inspect(b.Context(), lease.Filter{Keys: []string{"k"}}); err != nil || len(rows) != 1 {
				b.Errorf("%s: inspect: %+v, %v", name, rows, err)
			}
			b.faults(frame.Release, fault)
			b.release(l, false)
			b.held(lease.Owner{})
		})
	}
}

func TestTheBookForgetsWhatHasEnded(t *testing.T) {
	inBubble(t, func(b *bed) {
		for range 300 {
			q := asks()
			q.Key = lease.NewOwner().String()
			b.acquire(b.s, q)
			time.Sleep(ttl)
		}
		if n := b.s.Book(); n > 100 {
			b.Errorf("%d attempts are remembered, and none holds a key", n)
		}
	})
}

func TestAGrantWhoseAnswerTookLongerThanItsTTLIsNotTold(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.faults(frame.Acquire, wlocktest.HoldAnswer)
		time.AfterFunc(2*time.Second, b.n.Let)
		q := asks()
		q.TTL = time.Second
		if a, err := b.s.Acquire(b.Context(), []lease.AcquireRequest{q}); !errors.Is(err, lease.ErrBusy) || a[0].Granted {
			b.Errorf("%+v, %v", a, err)
		}
		b.held(lease.Owner{})
	})
}

func TestALeaseIsReliedOnFromBeforeItsRequestWasSent(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.faults(frame.Acquire, wlocktest.HoldAnswer)
		time.AfterFunc(2*time.Second, b.n.Let)
		q := asks()
		q.TTL = 5 * time.Second
		b.acquire(b.s, q)
		time.Sleep(3*time.Second + 2*time.Millisecond)
		if a := b.acquire(b.other, asks()); !a.Granted {
			b.Fatal("the lock has not expired, and the test shows nothing")
		}
		if b.relies(q.Owner) {
			b.Error("the holder relies on a lock that another owner has")
		}
	})
}

func TestAnAnswerThatNamesAnotherOwnerIsNoGrant(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.n.MangleOnce(func(f []byte) []byte { f[len(f)-6] ^= 1; return f })
		if a, err := b.s.Acquire(b.Context(), []lease.AcquireRequest{asks()}); !errors.Is(err, lease.ErrUnknown) ||
			!errors.Is(err, wlock.ErrCorrupt) || a[0].Granted {
			b.Errorf("%+v, %v", a, err)
		}
	})
}

// The server's time is longer by Skew, which is 1 ms here.
func TestALeaseEndsInTime(t *testing.T) {
	for _, d := range []time.Duration{700 * time.Millisecond, 2250 * time.Millisecond} {
		inBubble(t, func(b *bed) {
			q := asks()
			q.TTL = d
			l := lease.Lease{Key: "k", Owner: q.Owner, Token: b.acquire(b.s, q).Token}
			time.Sleep(d - time.Microsecond)
			if b.held(q.Owner); !b.relies(q.Owner) {
				b.Errorf("a lease of %s has ended early", d)
			}
			time.Sleep(time.Millisecond / 2)
			b.held(q.Owner)
			b.renew(l, lease.Lost)
			if a := b.acquire(b.other, asks()); a.Granted {
				b.Error("the lock was free while clocks of servers may differ")
			}
			time.Sleep(time.Millisecond)
			if a := b.acquire(b.other, asks()); !a.Granted || a.Token <= l.Token {
				b.Errorf("%+v", a)
			}
		})
	}
}
