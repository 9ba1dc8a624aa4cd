package queue

import (
	"context"
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
