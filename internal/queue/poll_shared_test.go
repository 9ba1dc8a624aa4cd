package queue

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// shared is a key of which so many processes take turns, with a grant every so often.
func shared(t *testing.T, crowd int, every time.Duration, f func(p *poller, polls func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		polls, began := 0, time.Now()
		p := newPoller(polling{
			Min: 10 * time.Millisecond, Max: 250 * time.Millisecond,
			Wanted: func(string) bool { return true },
			Read: func(context.Context, []string) (map[string]observed, error) {
				polls++
				return map[string]observed{"k": {Remaining: time.Hour, Token: lease.Token(time.Since(began) / every), Waiters: crowd}}, nil
			},
			Found: func(string, observed) {},
		})
		defer p.Stop()
		p.Watch("k", observed{})
		time.Sleep(time.Second)
		f(p, func() int { synctest.Wait(); return polls })
	})
}

// However many processes wait, all of them together poll about as often.
func TestProcessesThatShareAKeyPollItInTurns(t *testing.T) {
	for crowd, want := range map[int][2]int{0: {80, 110}, 1: {80, 110}, 8: {22, 30}, 32: {6, 10}, 100: {4, 8}} {
		shared(t, crowd, 8*time.Millisecond, func(_ *poller, polls func() int) {
			if n := polls(); n < want[0] || n > want[1] {
				t.Errorf("%d processes: %d polls in a second, want %d to %d", crowd, n, want[0], want[1])
			}
		})
	}
}

// A key that is granted faster than anything polls is found free no sooner by looking more.
func TestAKeyThatIsHardlyEverLeftFreeIsPolledLess(t *testing.T) {
	for crowd, want := range map[int][2]int{0: {85, 110}, 1: {45, 60}, 8: {6, 12}, 32: {4, 8}} {
		shared(t, crowd, time.Millisecond, func(_ *poller, polls func() int) {
			if n := polls(); n < want[0] || n > want[1] {
				t.Errorf("%d processes: %d polls in a second, want %d to %d", crowd, n, want[0], want[1])
			}
		})
	}
}

// That anything has changed is no news of a key that changes all the time.
func TestASharedKeyIsNotPolledForEveryChange(t *testing.T) {
	shared(t, 32, 8*time.Millisecond, func(p *poller, polls func() int) {
		before := polls()
		p.Now()
		if n := polls() - before; n != 0 {
			t.Errorf("%d polls", n)
		}
		p.Soon("k") // that it is free is
		if n := polls() - before; n != 1 {
			t.Errorf("%d polls at a key that has come free", n)
		}
	})
}

// A process that is woken for it each time would else never poll, which renews its registration.
func TestASharedKeyThatIsAwaitedAgainAndAgainIsPolledAsOften(t *testing.T) {
	shared(t, 8, time.Millisecond, func(p *poller, polls func() int) {
		before := polls()
		for range 100 {
			p.Watch("k", observed{})
			time.Sleep(10 * time.Millisecond)
		}
		if n := polls() - before; n < 6 || n > 12 {
			t.Errorf("%d polls in a second", n)
		}
	})
}

// held is a key that a holder keeps, and for which so many processes wait.
func held(p *polling, seen func() observed) *poller {
	p.Min, p.Max = 10*time.Millisecond, 250*time.Millisecond
	p.Wanted = func(string) bool { return true }
	p.Read = func(context.Context, []string) (map[string]observed, error) {
		return map[string]observed{"k": seen()}, nil
	}
	w := newPoller(*p)
	w.Watch("k", observed{})
	return w
}

// However many processes wait for a key that stays held, together they look once every Max, and one
// of them finds it free soon after a release that was not announced.
func TestAFleetPollsAKeyThatIsHeldAsOneProcessDoes(t *testing.T) {
	const fleet, rounds = 20, 40
	synctest.Test(t, func(t *testing.T) {
		var polls atomic.Int64
		var free atomic.Bool
		since := time.Now()
		seen := func() observed {
			polls.Add(1)
			return observed{Age: time.Since(since), Remaining: time.Hour, Token: 1, Waiters: fleet, Free: free.Load()}
		}
		found := make(chan time.Time, fleet)
		for range fleet {
			p := held(&polling{Found: func(_ string, o observed) {
				if o.Free {
					found <- time.Now()
				}
			}}, seen)
			defer p.Stop()
		}
		time.Sleep(time.Minute)
		before := polls.Load()
		time.Sleep(time.Minute)
		if n := polls.Load() - before; n > 60*fleet/4+fleet {
			t.Errorf("%d polls in a minute", n)
		}
		var all time.Duration
		for range rounds {
			free.Store(true)
			freed := time.Now()
			late := (<-found).Sub(freed)
			free.Store(false)
			all += late
			if late > 4*time.Second {
				t.Errorf("a key that was free was found so after %s", late)
			}
			time.Sleep(time.Duration(rand.N(10_000)) * time.Millisecond)
			for len(found) > 0 {
				<-found
			}
		}
		if mean := all / rounds; mean > 600*time.Millisecond {
			t.Errorf("a key that was free was found so after %s on average", mean)
		}
	})
}

// One process polls as ever. So does each of many if the lease has run out under a transaction that
// has the row locked: what ends that is asked for at each poll.
func TestAPauseIsSharedOnlyWhereOthersLookToo(t *testing.T) {
	for name, o := range map[string]observed{
		"alone": {Waiters: 1}, "not known": {}, "expired": {Waiters: 20, Expired: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var polls atomic.Int64
			since := time.Now()
			p := held(&polling{Found: func(string, observed) {}}, func() observed {
				polls.Add(1)
				o := o
				o.Age, o.Remaining, o.Token = time.Since(since), time.Hour, 1
				return o
			})
			defer p.Stop()
			time.Sleep(time.Minute)
			before := polls.Load()
			time.Sleep(10 * time.Second)
			if n := polls.Load() - before; n < 39 || n > 41 {
				t.Errorf("%s: %d polls in ten seconds", name, n)
			}
		})
	}
}

// A count of those that wait is believed for as long as the key is held, up to a registration's
// life, and for less where the key changes hands.
func TestWaitersOfAKeyThatIsHeldAreCountedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &notifications{registrations: registrations{waiters: map[string]waiterCount{"k": {20, time.Now()}}}}
		h.cfg.Recent = 250 * time.Millisecond
		k := lease.Lease{Key: "k"}
		old, young := []lease.Record{{Lease: k, Age: time.Minute}}, []lease.Record{{Lease: k, Age: time.Millisecond}}
		time.Sleep(countLasts)
		if n := len(h.uncounted(old)); n != 0 {
			t.Error("the waiters of a key that is held were counted again at once")
		}
		if n := len(h.uncounted(young)); n != 1 {
			t.Error("an old count was believed of a key that changes hands")
		}
		time.Sleep(registrationLasts)
		if n := len(h.uncounted(old)); n != 1 {
			t.Error("the waiters of a key that is held are never counted again")
		}
	})
}
