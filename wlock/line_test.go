package wlock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

// 14: a lock that has expired goes to its waiter, and to no newcomer of the same weight.
func TestANewcomerOvertakesNoWaiterOfItsWeight(t *testing.T) {
	i := newInterop(t)
	first := i.ask(wlock.Mutex)
	if i.double == nil {
		first.TTL = 300 * time.Millisecond // and a double ends it when there is a waiter
	}
	i.take(i.c, first)
	waits, comes := i.ask(wlock.Mutex), i.ask(wlock.Mutex)
	waits.Weight, comes.Weight = 5, 5
	got := i.wait(t.Context(), waits)
	i.settled(1)
	if i.double != nil {
		time.AfterFunc(20*time.Millisecond, func() { i.double.Expire(wire(i.key)) })
	}
	for {
		if g, err := i.c.TryLock(t.Context(), comes); !errors.Is(err, wlock.ErrRefused) {
			t.Fatalf("%+v, %v, want a refusal", g, err)
		}
		select {
		case l := <-got:
			i.free(l, true, false)
			return
		default:
		}
	}
}

// 14: a heavier one may, while the lock is free: one of the two has it, and then the other.
func TestAHeavierNewcomerAndAWaiterComeOneAfterTheOther(t *testing.T) {
	i := newInterop(t)
	last := i.take(i.c, i.ask(wlock.Mutex))
	waits, comes := i.ask(wlock.Mutex), i.ask(wlock.Mutex)
	waits.Weight, comes.Weight = 5, 10
	got := i.wait(t.Context(), waits)
	i.settled(1)
	i.free(last, true, false)
	var waited, newcomer wlock.Lock
	for waited.Token == 0 || newcomer.Token == 0 {
		select {
		case waited = <-got:
			got = nil
			i.free(waited, true, false)
		default:
		}
		if newcomer.Token > 0 {
			continue
		}
		if g, err := i.c.TryLock(t.Context(), comes); err == nil {
			newcomer = g.Lock
			i.free(newcomer, true, false)
		} else if !errors.Is(err, wlock.ErrRefused) {
			t.Fatal(err)
		}
	}
	if waited.Token == newcomer.Token || min(waited.Token, newcomer.Token) <= last.Token {
		t.Errorf("tokens %d and %d after %d", waited.Token, newcomer.Token, last.Token)
	}
}

// 16: a waiter is registered again before the server forgets it, which it does after a minute.
func TestAWaitOutlastsTheServersMinute(t *testing.T) {
	three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
		var silent atomic.Bool // no request of the waiter arrives
		holder, waiter := client(t, cfg), client(t, cfg)
		defer holder.Close()
		defer waiter.Close()
		held, err := holder.TryLock(t.Context(), wlock.Ask{
			Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		a := wlock.Ask{Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: time.Minute}
		for seq := 1; seq <= 3; seq++ {
			c.Node(seq).Fault(func(q *frame.Request) wlocktest.Fault {
				if silent.Load() && q.Owner == frame.Owner(a.Owner) {
					return wlocktest.LoseBefore
				}
				return wlocktest.None
			})
		}
		done := make(chan error, 1)
		go func() {
			_, err := waiter.WaitLock(t.Context(), a)
			done <- err
		}()
		for second := range 180 {
			time.Sleep(time.Second)
			if n := c.Waiting(wire("k")); n != 1 {
				t.Fatalf("%d wait after %d s", n, second)
			}
		}
		silent.Store(true)
		time.Sleep(70 * time.Second)
		if n := c.Waiting(wire("k")); n != 0 {
			t.Errorf("%d wait, of which the server has heard nothing", n)
		}
		silent.Store(false)
		if freed, _, err := holder.ReleaseLock(t.Context(), held.Lock); !freed || err != nil {
			t.Fatal(freed, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// 19: a watch of a Java client with an old token empties the queue. All come back to it.
func TestWaitersComeBackWhenTheirQueueIsEmptied(t *testing.T) {
	i := newInterop(t)
	last := i.take(i.c, i.ask(wlock.Mutex))
	waits := make([]<-chan wlock.Lock, 3)
	for at := range waits {
		waits[at] = i.wait(t.Context(), i.ask(wlock.Mutex))
		i.settled(at + 1)
	}
	if err := i.c.WatchAsJava(t.Context(), i.key); err != nil {
		t.Fatal(err)
	}
	i.settled(3)
	i.free(last, true, false)
	for range waits {
		var l wlock.Lock
		select {
		case l = <-waits[0]:
			waits[0] = nil
		case l = <-waits[1]:
			waits[1] = nil
		case l = <-waits[2]:
			waits[2] = nil
		}
		if l.Token <= last.Token {
			t.Errorf("token %d after %d", l.Token, last.Token)
		}
		last = l
		i.free(l, true, false)
	}
}

// 23: a redirect names an IP, and the port that it names is none for clients.
func TestARedirectToServersOfOneAddressIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := wlocktest.New(wlocktest.Options{Nodes: 3, Groups: 3, OneIP: true}, cluster)
		defer c.Close()
		cfg := config(c)
		cfg.Groups = 3
		k := client(t, cfg)
		defer k.Close()
		a := wlock.Ask{Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: time.Hour}
		first, err := k.TryLock(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		group := int32(wlock.Place(wire("k"), 3))
		for range 6 { // the registry is not asked: only redirects tell of each move
			c.Master(group).Kill()
			c.Elect()
			for seq := 1; seq <= 3; seq++ {
				c.Node(seq).Start()
			}
			next, err := k.TryLock(t.Context(), a)
			if err != nil || next.Token <= first.Token {
				t.Fatalf("token %d after %d: %v", next.Token, first.Token, err)
			}
			first = next
		}
	})
}

// 29: what a server sends by itself has numbers of its own, which may be those of requests.
func TestAnEventWithTheNumberOfARequestIsNotItsAnswer(t *testing.T) {
	three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
		holder, waiter := client(t, cfg), client(t, cfg)
		defer holder.Close()
		defer waiter.Close()
		ask := func() wlock.Ask {
			return wlock.Ask{Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: time.Hour}
		}
		held, err := holder.TryLock(t.Context(), ask())
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan error, 1)
		go func() {
			_, err := waiter.WaitLock(t.Context(), ask())
			granted <- err
		}()
		synctest.Wait()
		stranger := ask()
		var number atomic.Int64
		n := c.Master(int32(wlock.Place(wire("k"), 3)))
		n.Fault(func(q *frame.Request) wlocktest.Fault {
			if q.Owner != frame.Owner(stranger.Owner) {
				return wlocktest.None
			}
			number.Store(q.Session)
			return wlocktest.Hold
		})
		answered := make(chan error, 1)
		go func() {
			_, err := waiter.TryLock(t.Context(), stranger)
			answered <- err
		}()
		synctest.Wait()
		c.Number(number.Load())
		if freed, _, err := holder.ReleaseLock(t.Context(), held.Lock); !freed || err != nil {
			t.Fatal(freed, err)
		}
		if err := <-granted; err != nil {
			t.Errorf("the waiter: %v", err)
		}
		select {
		case err := <-answered:
			t.Errorf("the event was taken for an answer: %v", err)
		default:
		}
		n.Let()
		if err := <-answered; !errors.Is(err, wlock.ErrRefused) {
			t.Errorf("the request: %v, want a refusal", err)
		}
	})
}

// 26: what a server does not answer ends as unknown, and no later than Patience.
func TestARequestWithoutAnAnswerEndsInTime(t *testing.T) {
	three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
		k := client(t, cfg)
		defer k.Close()
		for seq := 1; seq <= 3; seq++ {
			c.Node(seq).Fault(func(q *frame.Request) wlocktest.Fault { return wlocktest.LoseBefore })
		}
		began := time.Now()
		g, err := k.TryLock(t.Context(), wlock.Ask{Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: time.Hour})
		if !errors.Is(err, lease.ErrUnknown) || !g.Unknown || g.Token != 0 {
			t.Errorf("%+v, %v", g, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("after %s", took)
		}
	})
}

// 27: ERROR is no refusal: the lock may be there, and asking again has it.
func TestAnErrorThatWasCarriedOutIsResolved(t *testing.T) {
	three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
		k := client(t, cfg)
		defer k.Close()
		var failed atomic.Bool
		for seq := 1; seq <= 3; seq++ {
			c.Node(seq).Fault(func(q *frame.Request) wlocktest.Fault {
				if q.Type == frame.Acquire && !failed.Swap(true) {
					return wlocktest.FailAfter
				}
				return wlocktest.None
			})
		}
		a := wlock.Ask{Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: time.Hour}
		g, err := k.TryLock(t.Context(), a)
		if err != nil || !g.Unknown || g.Owner != a.Owner {
			t.Fatalf("%+v, %v", g, err)
		}
		if l, held, err := k.See(t.Context(), a.Lock); !held || l != g.Lock || err != nil {
			t.Errorf("GET shows %+v (%t, %v), want %+v", l, held, err, g.Lock)
		}
	})
}
