package watchdog_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// stepper is a store whose clock can be stepped, and whose answers may take their time. It extends
// every lease.
type stepper struct {
	born time.Time
	step atomic.Int64
	slow func(reqs []lease.RenewRequest) (there, back time.Duration)
}

func newStepper() *stepper { return &stepper{born: time.Now().Add(-time.Hour)} }

func (s *stepper) by(d time.Duration) { s.step.Add(int64(d)) }

func (s *stepper) Renew(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	var there, back time.Duration
	if s.slow != nil {
		there, back = s.slow(reqs)
	}
	time.Sleep(there)
	answers, _ := all(reqs, lease.Extended)
	for i := range answers {
		answers[i].Clock = time.Since(s.born) + time.Duration(s.step.Load())
	}
	time.Sleep(back)
	return answers, nil
}

// skews collects what a Watchdog reports of its store's clock.
type skews chan time.Duration

func (s skews) config() watchdog.Config {
	return watchdog.Config{Batch: 1, Skewed: func(ahead time.Duration) { s <- ahead }}
}

// probed has read its store's clock every 2 s for so long, which is once at least.
func probed(t *testing.T, d time.Duration) (*stepper, *watchdog.Watchdog, skews) {
	t.Helper()
	store, told := newStepper(), make(skews, 10)
	dog := watchdog.New(store, told.config())
	t.Cleanup(dog.Stop)
	keep(t, dog, "prober", renewEvery(2*time.Second))
	time.Sleep(d)
	return store, dog, told
}

func (s skews) expect(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	for _, w := range want {
		select {
		case got := <-s:
			if got != w {
				t.Errorf("told of %v, want %v", got, w)
			}
		default:
			t.Errorf("not told of %v", w)
		}
	}
	select {
	case got := <-s:
		t.Errorf("told of %v, want nothing", got)
	default:
	}
}

func TestStepForwardBringsDeadlinesForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := newStepper(), make(skews, 10)
		sends := &recorder{store: store}
		dog := watchdog.New(sends, told.config())
		defer dog.Stop()
		prober := keep(t, dog, "prober")
		time.Sleep(every) // one reading
		rarely := keep(t, dog, "rarely", renewEvery(25*time.Second))
		watched := keep(t, dog, "watched", noRenew)
		wide := keep(t, dog, "wide", noRenew, func(h *watchdog.Held) { h.TTL, h.Margin = 2*ttl, ttl })

		time.Sleep(time.Second)
		store.by(5 * time.Second)
		stepped := time.Now()
		time.Sleep(every)
		told.expect(t, 5*time.Second)
		if got := dog.Deadline(&watched.Held); !got.Equal(watched.sent.Add(trust - 5*time.Second)) {
			t.Errorf("deadline %v after the grant, want %v less 5s", got.Sub(watched.sent), trust)
		}
		if got := dog.Deadline(&wide.Held); !got.Equal(wide.sent.Add(ttl)) {
			t.Errorf("a margin that covers the step was not enough: deadline %v after the grant", got.Sub(wide.sent))
		}
		asked := false
		for _, s := range sends.since(stepped) {
			asked = asked || s.reqs[0].Key == "rarely"
		}
		if !asked {
			t.Error("a lease whose expiry came nearer was not renewed at once")
		}
		watched.endAt(t, trust-5*time.Second, lease.ErrLost)

		time.Sleep(10 * ttl)
		told.expect(t) // once is enough
		prober.alive(t)
		rarely.alive(t)
		if left := time.Until(dog.Deadline(&prober.Held)); left < trust-every {
			t.Errorf("the deadline of a lease renewed since is %v away", left)
		}
	})
}

func TestStepThatTheMarginsCoverIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := newStepper(), make(skews, 10)
		dog := watchdog.New(store, told.config())
		defer dog.Stop()
		keep(t, dog, "prober")
		watched := keep(t, dog, "watched", noRenew)
		time.Sleep(every)
		store.by(margin / 2)
		watched.endAt(t, trust, lease.ErrLost)
		told.expect(t)
	})
}

// TestSmallStepsAddUp: each step is less than half the margin of a lease that is not renewed.
func TestSmallStepsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dog, told := probed(t, 2*time.Second)
		watched := keep(t, dog, "watched", noRenew)
		const step = margin * 2 / 5
		for _, earlier := range []time.Duration{0, 2 * step, 2 * step, 4 * step} {
			time.Sleep(time.Millisecond)
			store.by(step)
			time.Sleep(4 * time.Second)
			if got := dog.Deadline(&watched.Held); !got.Equal(watched.sent.Add(trust - earlier)) {
				t.Errorf("deadline %v after the grant, want %v less %v", got.Sub(watched.sent), trust, earlier)
			}
		}
		told.expect(t, step, step)
	})
}

// TestStepsToAndFroDoNotAddUp: the readings are of two servers, whose clocks differ.
func TestStepsToAndFroDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dog, told := probed(t, 2*time.Second)
		watched := keep(t, dog, "watched", noRenew)
		step := margin * 2 / 5
		for range 4 {
			time.Sleep(time.Millisecond)
			store.by(step)
			time.Sleep(2 * time.Second)
			step = -step
		}
		if got := dog.Deadline(&watched.Held); !got.Equal(watched.sent.Add(trust)) {
			t.Errorf("deadline %v after the grant, want %v", got.Sub(watched.sent), trust)
		}
		told.expect(t)
	})
}

// The readings come with the renewals of a lease whose margin is large; another's is not.
func TestStepIsJudgedByEachLeasesMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := newStepper(), make(skews, 10)
		dog := watchdog.New(store, told.config())
		defer dog.Stop()
		keep(t, dog, "prober")
		narrow := keep(t, dog, "narrow", noRenew, func(h *watchdog.Held) { h.Margin = time.Second })
		time.Sleep(every)
		store.by(time.Second)
		narrow.endAt(t, ttl-2*time.Second, lease.ErrLost)
		told.expect(t, time.Second)
	})
}

func TestStepBackChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := newStepper(), make(skews, 10)
		dog := watchdog.New(store, told.config())
		defer dog.Stop()
		keep(t, dog, "prober")
		watched := keep(t, dog, "watched", noRenew)
		time.Sleep(every)
		store.by(-time.Minute)
		watched.endAt(t, trust, lease.ErrLost)
		told.expect(t)
		store.by(10 * time.Second) // from where it is now, this is a step forward
		time.Sleep(every)
		told.expect(t, 10*time.Second)
	})
}

// An honest clock is never suspected, however long the network takes: two replies may be far apart
// though the readings in them are not, and the other way round.
func TestSlowRepliesAreNoSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := newStepper(), make(skews, 10)
		n := 0
		store.slow = func([]lease.RenewRequest) (there, back time.Duration) {
			n++
			return time.Duration(n%3) * 2 * time.Second, time.Duration(n%5) * time.Second
		}
		config := told.config()
		config.Batch, config.Parallel = 10, 1
		dog := watchdog.New(store, config)
		defer dog.Stop()
		a, b := keep(t, dog, "a"), keep(t, dog, "b", renewEvery(7*time.Second))
		time.Sleep(100 * ttl)
		a.alive(t)
		b.alive(t)
		told.expect(t)
	})
}

// journey makes the first renewal of a key take its time, there and back.
type journey struct{ there, back time.Duration }

func (s *stepper) firstOf(journeys map[string]journey) {
	var mu sync.Mutex
	s.slow = func(reqs []lease.RenewRequest) (time.Duration, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		j := journeys[reqs[0].Key]
		delete(journeys, reqs[0].Key)
		return j.there, j.back
	}
}

// A reply from before the step comes after another has told of it. What it extends was extended
// before the step.
func TestReplyOvertakenByAStepIsNotBelievedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := newStepper(), make(skews, 10)
		store.firstOf(map[string]journey{"slow": {0, 12 * time.Second}})
		seen := false
		sends := &recorder{store: renewer(func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if reqs[0].Key == "slow" {
				if seen {
					return swallow(ctx, reqs)
				}
				seen = true
			}
			return store.Renew(ctx, reqs)
		})}
		dog := watchdog.New(sends, told.config())
		defer dog.Stop()
		keep(t, dog, "prober", renewEvery(2*time.Second))
		// Its renewal is sent between 9 and 10 s and answered between 21 and 22 s.
		slow := keep(t, dog, "slow")
		time.Sleep(every)
		store.by(5 * time.Second)
		time.Sleep(2 * time.Second)
		told.expect(t, 5*time.Second)
		if got := dog.Deadline(&slow.Held); !got.Equal(slow.sent.Add(trust - 5*time.Second)) {
			t.Errorf("the deadline is %v after the grant", got.Sub(slow.sent))
		}
		var sent []time.Duration
		ended := slow.end(t, lease.ErrLost)
		for _, s := range sends.all() {
			if s.reqs[0].Key == "slow" {
				sent = append(sent, s.at.Sub(slow.sent))
			}
		}
		if want := sent[0] + trust - 5*time.Second; ended.after != want {
			t.Errorf("ended after %v, want %v", ended.after, want)
		}
		if sent[1] != sent[0]+12*time.Second {
			t.Errorf("renewed at %v, not at once when the reply came at %v", sent[1], sent[0]+12*time.Second)
		}
	})
}

// Nor is it a second step when the next reply comes. That holds even for a request that was sent
// after the one which told of the step, if it was served before.
func TestReplyOvertakenByAStepIsNoSecondStep(t *testing.T) {
	for name, journeys := range map[string]map[string]journey{
		"sent before":                  {"overtaken": {0, 12 * time.Second}},
		"sent after and served before": {"prober": {4 * time.Second, 0}, "overtaken": {0, 4 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, told := newStepper(), make(skews, 10)
				store.firstOf(journeys)
				dog := watchdog.New(store, told.config())
				defer dog.Stop()
				watches := []*watch{keep(t, dog, "reader", renewEvery(time.Second))}
				time.Sleep(time.Second) // one reading
				dog.Drop(&watches[0].Held)
				// Sent between 7.2 and 8 s, served 4 s later.
				prober := keep(t, dog, "prober", renewEvery(8*time.Second))
				// Sent between 9 and 10 s, answered late.
				overtaken := keep(t, dog, "overtaken")
				time.Sleep(every)
				store.by(5 * time.Second)
				time.Sleep(10 * ttl)
				told.expect(t, 5*time.Second)
				prober.alive(t)
				overtaken.alive(t)
			})
		})
	}
}

// The extension that tells of a step was given after it.
func TestReplyThatTellsOfAStepIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := newStepper(), make(skews, 10)
		store.slow = func([]lease.RenewRequest) (there, back time.Duration) {
			return 100 * time.Millisecond, 200 * time.Millisecond
		}
		sends := &recorder{store: store}
		dog := watchdog.New(sends, told.config())
		defer dog.Stop()
		prober := keep(t, dog, "prober")
		time.Sleep(every + time.Second)
		store.by(5 * time.Second)
		time.Sleep(every)
		told.expect(t, 4700*time.Millisecond) // less the time that the requests can have taken
		if got, want := dog.Deadline(&prober.Held), sends.all()[1].at.Add(trust); !got.Equal(want) {
			t.Errorf("the deadline is %v sooner", want.Sub(got))
		}
	})
}

// After the step another lease is the next to end than before.
func TestStepChangesWhoIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := newStepper(), make(skews, 10)
		dog := watchdog.New(store, told.config())
		defer dog.Stop()
		keep(t, dog, "prober") // reads after 10 and after 20 s
		wide := keep(t, dog, "wide", noRenew, func(h *watchdog.Held) { h.TTL, h.Margin = 55*time.Second, ttl })
		narrow := keep(t, dog, "narrow", noRenew, func(h *watchdog.Held) { h.TTL = ttl + 2*time.Second })
		time.Sleep(12 * time.Second)
		store.by(5 * time.Second)
		narrow.endAt(t, 24*time.Second, lease.ErrLost) // not 29 s
		wide.endAt(t, 25*time.Second, lease.ErrLost)
		told.expect(t, 5*time.Second)
	})
}

// A grant that was asked for before a step, and comes when another reply has told of it, was given
// before the step too. Of two steps that it has missed, the second is not the whole of it: a clock
// that runs a little faster than ours makes a small one with nearly every reading.
func TestGrantOvertakenBySteps(t *testing.T) {
	for _, small := range []time.Duration{0, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			store, dog, told := probed(t, every)
			granted := newWatch(t, "granted")
			granted.Every = 0
			store.by(5 * time.Second)
			time.Sleep(2 * time.Second)
			told.expect(t, 5*time.Second)
			if store.by(small); small > 0 {
				time.Sleep(2 * time.Second)
			}
			if err := dog.Keep(&granted.Held, granted.sent); err != nil {
				t.Fatal(err)
			}
			granted.endAt(t, trust-5*time.Second-small, lease.ErrLost)
		})
	}
}
