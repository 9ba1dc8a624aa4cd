package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a poller over keys that were granted at some time, or are free.
type watched struct {
	*poller
	mu     sync.Mutex
	held   map[string]time.Time
	gone   map[string]bool
	polls  []time.Time
	asked  int
	freed  map[string]time.Time // when it was seen
	broken bool
}

func poll(t *testing.T, f func(t *testing.T, p *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &watched{held: make(map[string]time.Time), freed: make(map[string]time.Time), gone: make(map[string]bool)}
		p.poller = newPoller(polling{
			Min: 10 * time.Millisecond, Max: 250 * time.Millisecond,
			Read: p.ask, Found: p.see, Wanted: p.wanted,
		})
		defer p.Stop()
		f(t, p)
	})
}

func (p *watched) wanted(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.gone[key]
}

func (p *watched) ask(_ context.Context, keys []string) (map[string]observed, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polls = append(p.polls, time.Now())
	p.asked += len(keys)
	if p.broken {
		return nil, errors.New("down")
	}
	out := make(map[string]observed)
	for _, key := range keys {
		if since, ok := p.held[key]; ok {
			out[key] = observed{Age: time.Since(since), Remaining: time.Hour}
		}
	}
	return out, nil
}

func (p *watched) see(key string, s observed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.freed[key]; s.Free && !ok {
		p.freed[key] = time.Now()
	}
}

func (p *watched) hold(key string) {
	p.mu.Lock()
	p.held[key] = time.Now()
	p.mu.Unlock()
	p.Watch(key, observed{Remaining: time.Hour})
}

func (p *watched) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.polls)
}

func TestPollsBackOffTheLongerAKeyIsHeld(t *testing.T) {
	poll(t, func(t *testing.T, p *watched) {
		p.hold("k")
		time.Sleep(time.Second)
		if n := p.count(); n < 10 || n > 25 {
			t.Errorf("%d polls in the first second", n)
		}
		before := p.count()
		time.Sleep(10 * time.Second)
		if n := p.count() - before; n < 38 || n > 42 {
			t.Errorf("%d polls in ten seconds later on", n)
		}
	})
}

// Keys that came at different times are polled at together.
func TestManyKeysAreOneStatement(t *testing.T) {
	poll(t, func(t *testing.T, p *watched) {
		for i := range 1000 {
			p.hold(fmt.Sprint(i))
			time.Sleep(3 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		before := p.count()
		time.Sleep(10 * time.Second)
		if n := p.count() - before; n > 50 {
			t.Errorf("%d statements in ten seconds", n)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		clear(p.held)
		freed := time.Now()
		p.mu.Unlock()
		time.Sleep(time.Second)
		p.mu.Lock()
		for i := range 1000 {
			if late := p.freed[fmt.Sprint(i)].Sub(freed); late < 0 || late > 260*time.Millisecond {
				t.Fatalf("key %d was seen free after %v", i, late)
			}
		}
	})
}

func TestNothingRunsWithoutWaiters(t *testing.T) {
	poll(t, func(t *testing.T, p *watched) {
		p.hold("k")
		p.mu.Lock()
		p.gone["k"] = true
		p.mu.Unlock()
		time.Sleep(time.Second)
		before := p.count()
		time.Sleep(time.Hour)
		if n := p.count() - before; n != 0 {
			t.Errorf("%d polls without waiters", n)
		}
		p.mu.Lock()
		p.gone["k"] = false
		p.mu.Unlock()
		p.hold("k") // and again
		time.Sleep(time.Second)
		if p.count() == before {
			t.Error("it did not begin again")
		}
	})
}

func TestADatabaseThatIsDownIsNotHammered(t *testing.T) {
	poll(t, func(t *testing.T, p *watched) {
		p.broken = true
		p.hold("k")
		time.Sleep(10 * time.Second)
		if n := p.count(); n > 50 {
			t.Errorf("%d polls in ten seconds", n)
		}
		p.mu.Lock()
		p.broken = false
		delete(p.held, "k")
		p.mu.Unlock()
		time.Sleep(time.Second)
		if p.wanted("k"); p.freed["k"].IsZero() {
			t.Error("not seen free afterwards")
		}
	})
}

func TestAnExpiryIsNotSleptThrough(t *testing.T) {
	poll(t, func(t *testing.T, p *watched) {
		p.Watch("k", observed{Remaining: 5 * time.Millisecond})
		time.Sleep(7 * time.Millisecond)
		if p.count() != 1 {
			t.Errorf("%d polls", p.count())
		}
	})
}

func TestAHintCausesAPollAtOnce(t *testing.T) {
	poll(t, func(t *testing.T, p *watched) {
		p.hold("k")
		p.hold("other")
		time.Sleep(10 * time.Second)
		for _, hint := range []func(){p.Now, func() { p.Soon("k", "unknown") }} {
			before := p.count()
			hint()
			synctest.Wait()
			if p.count() != before+1 {
				t.Errorf("%d polls", p.count()-before)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestAKeyOfOurOwnIsLeftAlone(t *testing.T) {
	poll(t, func(t *testing.T, p *watched) {
		p.mu.Lock()
		p.held["k"] = time.Now()
		p.mu.Unlock()
		for range 100 { // handed over and over
			p.Own("k", observed{Remaining: time.Hour})
			time.Sleep(time.Millisecond)
		}
		if p.count() > 1 {
			t.Errorf("%d polls in 100 ms", p.count())
		}
		time.Sleep(time.Second)
		if n := p.count(); n < 3 {
			t.Errorf("%d polls afterwards", n)
		}
	})
}
