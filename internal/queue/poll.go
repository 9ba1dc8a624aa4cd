package queue

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// observed is what a poll read of a key.
type observed struct {
	// Free says that the key has no holder, or that the lease has expired.
	Free bool
	// Age is how long the holder has had the key, Remaining how long the lease still lasts.
	Age, Remaining time.Duration
	// Note is the holder's, as it is stored.
	Note string
	// Polled says that a poll has read this, and not another of this process's calls. Expired then
	// says that the key has a holder whose lease has run out.
	Polled, Expired bool
	// Shared says that readers hold the key.
	Shared bool
	// Token is that of the last grant, and At the time of the poll: together they show whether the
	// key changes hands.
	Token lease.Token
	At    time.Time
	// Waiters is how many processes wait for the key, or 0 if that is unknown.
	Waiters int
	// Fleeting says that the key is granted so often that a poll says next to nothing: by now it
	// may be free or held. The poller fills it in.
	Fleeting bool
}

// longest is the longest pause: a registration outlasts two of them.
const longest = 4 * time.Second

// poller reads all awaited keys from one goroutine, with one statement at a time, however many
// there are. It backs off from a key the longer its holder has had it: the pause grows by a quarter
// of the hold, up to Max. Processes that wait together share that: each pauses Max for each of
// them, so that one of them looks every Max on average, and a holder is not polled by a fleet.
type poller struct {
	polling

	mu      sync.Mutex
	watches map[string]*pollState
	running bool
	stopped bool
	sooner  chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	born    time.Time // the clock by whose beats, one every Max, all keys at such a pause are read
}

// polling says what a poller reads, how often, and for whom.
type polling struct {
	Min, Max time.Duration
	// Wanted reports whether a waiter wants key. The poller forgets a key that none wants.
	Wanted func(key string) bool
	// Read reads keys in one read-only statement. A key without an answer is free, unless beside an
	// error: a store with several databases has answers of those that are up.
	Read func(ctx context.Context, keys []string) (map[string]observed, error)
	// Found is called with what was read of each key, without any lock held.
	Found func(key string, o observed)
}

// pollState is one key's next poll.
type pollState struct {
	last     time.Time
	interval time.Duration
	due      time.Time
	seen     observed
	shared   bool // other processes were granted the key in between
	every    time.Duration
}

// paces fixes how often w's key is polled, from what the last poll and this one have read. The
// pollers of all processes that wait for a shared key together poll it about as often as one
// process would: each then has the same chance to find it free. If all polled every Min, they would
// do more work than the holders. If the key is granted so often that it is hardly ever left free,
// which paces notes in now, a poll finds it no sooner and only disturbs the holders: a quarter of
// the polls will do.
func (p *poller) paces(w *pollState, now *observed) time.Duration {
	last := w.seen
	grants, since := now.Token-last.Token, now.At.Sub(last.At)
	overtaken := last.Token > 0 && grants > 0 && since < 4*p.Max
	w.shared = overtaken || w.shared && now.Age < p.Max
	now.Fleeting = overtaken && since < time.Duration(grants)*p.Min/2
	w.every = max(now.Age/4, p.Min)
	switch share := time.Duration(now.Waiters) * p.Min; {
	case now.Fleeting:
		w.every = max(w.every, 2*share)
	case w.shared:
		w.every = max(w.every, share/2)
	}
	most := p.Max
	if !w.shared && !now.Expired {
		most = max(most, min(longest, p.Max*time.Duration(now.Waiters)))
	}
	w.every = min(w.every, most)
	return w.every
}

// newPoller returns a poller. Nothing runs until something is watched.
func newPoller(of polling) *poller {
	p := &poller{polling: of, watches: make(map[string]*pollState), sooner: make(chan struct{}, 1)}
	p.born = time.Now().Add(-rand.N(max(longest, p.Max))) // or those that start together poll together
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Stop returns when the loop has ended.
func (p *poller) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
}

// Watch has key polled, for the first time after Min or when its holder's lease expires. A key that
// is watched already is polled again as if it were new, but no later than it was to be if other
// processes get it too: a process that waits for it again and again would never poll, and its
// registration would end.
func (p *poller) Watch(key string, o observed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watch(key, o)
	every := p.Min
	if w.shared {
		every = w.every
	}
	was := w.due
	w.due = p.after(w, every, o.Remaining)
	if w.shared && was.Before(w.due) {
		w.due = was
	}
	p.nudge() // it may be due before the next one
}

// Later has key polled after d, unless other processes poll it too.
func (p *poller) Later(key string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watches[key]; w != nil && !w.shared {
		w.due = time.Now().Add(d)
	}
	p.nudge()
}

// Soon has some keys polled at once.
func (p *poller) Soon(keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if w := p.watches[key]; w != nil {
			w.due = time.Time{}
		}
	}
	p.nudge()
}

// Own has key polled every Max: this process holds it, and will know of its release. It does not
// wake the loop, because it comes with every hand-over.
func (p *poller) Own(key string, o observed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watch(key, o)
	w.due = p.after(w, p.Max, 0)
}

// watch returns key's watch, new if there was none, with what is known of the key. The loop runs
// then, unless the poller was stopped; it sees the watch when the caller has unlocked the mutex.
func (p *poller) watch(key string, o observed) *pollState {
	if !p.running && !p.stopped {
		p.running = true
		p.wg.Go(p.loop)
	}
	w := p.watches[key]
	if w == nil {
		w = &pollState{}
		p.watches[key] = w
	}
	if o.Token == 0 && w.seen.Token > 0 {
		o.Token, o.At = w.seen.Token, w.seen.At
	}
	w.seen = o
	return w
}

// Last is what was last read of key.
func (p *poller) Last(key string) observed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watches[key]; w != nil {
		return w.seen
	}
	return observed{}
}

// Now has every key polled at once, because a notification may have been missed.
func (p *poller) Now() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.watches {
		if !w.shared {
			w.due = time.Time{}
		}
	}
	p.nudge()
}

// after fixes when w is polled next: just past the holder's expiry, and jittered so that processes
// do not fall in step. All keys at a pause of n times Max are polled together, at each nth beat of
// one clock.
func (p *poller) after(w *pollState, interval, remaining time.Duration) time.Time {
	now := time.Now()
	w.last, w.interval = now, interval
	if remaining > 0 && remaining < interval {
		return now.Add(remaining + time.Millisecond)
	}
	if interval >= p.Max {
		pause := interval - interval%p.Max
		return now.Add(pause - now.Sub(p.born)%pause)
	}
	return now.Add(time.Duration(float64(interval) * (0.9 + 0.2*rand.Float64())))
}

func (p *poller) nudge() {
	select {
	case p.sooner <- struct{}{}:
	default:
	}
}

// loop ends when there is nothing left to watch.
func (p *poller) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		keys, wait, more := p.next(time.Now())
		if !more {
			return
		}
		if len(keys) > 0 {
			p.poll(keys)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-p.sooner:
		case <-p.ctx.Done():
		}
	}
}

// next returns the keys to poll now, or else how long to sleep, and drops the keys that no waiter
// wants. A key that is due takes along all keys that have a tenth of their interval behind them,
// because the statement is the same. Keys at the pause Max have a beat of their own.
func (p *poller) next(now time.Time) (keys []string, wait time.Duration, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A waiter joins its queue before it has the key watched, and Watch needs the mutex: no key is
	// dropped that is about to be wanted.
	maps.DeleteFunc(p.watches, func(key string, _ *pollState) bool { return !p.Wanted(key) })
	if len(p.watches) == 0 || p.stopped {
		p.running = false
		return nil, 0, false
	}
	sooner := func(a, b *pollState) int { return a.due.Compare(b.due) }
	first := slices.MinFunc(slices.Collect(maps.Values(p.watches)), sooner)
	if wait = first.due.Sub(now); wait > 0 {
		return nil, wait, true
	}
	for key, w := range p.watches {
		if !w.due.After(now) || w.interval < p.Max && now.Sub(w.last) >= w.interval/10 {
			keys = append(keys, key)
			w.due = now // and not zero: that asks for another poll after this one
		}
	}
	slices.Sort(keys)
	return keys, 0, true
}

func (p *poller) poll(keys []string) {
	asked := time.Now()
	found, err := p.Read(p.ctx, keys)
	for i, key := range keys {
		o, ok := found[key]
		o.Free = o.Free || !ok
		if news := p.note(key, o, asked, ok || err == nil); !news {
			keys[i] = ""
		}
	}
	for _, key := range keys {
		if key != "" {
			p.Found(key, p.Last(key))
		}
	}
}

// note fixes when key is polled next. It reports false if the poll failed, or if a Watch came after
// it.
func (p *poller) note(key string, o observed, asked time.Time, read bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watches[key]
	switch {
	case w == nil || w.last.After(asked):
		return false
	case !read:
		w.due = p.after(w, min(max(2*w.interval, p.Min), p.Max), 0)
		return false
	}
	o.At, o.Polled = asked, true
	every := p.paces(w, &o)
	w.seen = o
	if w.due.IsZero() {
		return true // Soon or Now came during the poll, and the poll may not have read their cause
	}
	w.due = p.after(w, every, o.Remaining)
	return true
}
