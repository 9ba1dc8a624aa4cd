package waitq

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Sight is what a poll saw of a key.
type Sight struct {
	// Free says that nobody holds it, or the lease has expired.
	Free bool
	// Age is how long its holder has had it, Remaining how long the lease has still to go.
	Age, Remaining time.Duration
	// Note is the holder's.
	Note string
	// Token is that of the last grant, and At when it was seen: by these the poller sees whether the key changes hands.
	Token int64
	At    time.Time
	// Crowd is how many processes wait for the key, or 0 if that is not known.
	Crowd int
	// Fleeting says that the key is granted so often that a look says next to nothing: it may well be free, or held, by now. The
	// poller fills it in.
	Fleeting bool
}

// Poller looks at all keys that are waited for, from one goroutine, with one question at a time, however many there are. It
// looks at a key the less often the longer its holder has had it: a wait is prolonged by a quarter of the hold, at most by Max.
type Poller struct {
	Min, Max time.Duration
	// Wanted reports whether anybody still waits for key; one that nobody waits for is forgotten.
	Wanted func(key string) bool
	// Ask looks at keys, in one read-only statement. A key without an answer is free.
	Ask func(ctx context.Context, keys []string) (map[string]Sight, error)
	// Seen is called with what was seen of each key, without any lock held.
	Seen func(key string, s Sight)

	mu      sync.Mutex
	watches map[string]*watch
	running bool
	stopped bool
	sooner  chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	born    time.Time // the clock by which what is seldom looked at is looked at together
}

// watch is one key's next look.
type watch struct {
	last     time.Time
	interval time.Duration
	due      time.Time
	sight    Sight
	shared   bool // other processes get it in between
	every    time.Duration
}

// paces fixes how often w's key is polled, by what was seen of it last and now. A key that others got in between is polled by all
// who wait for it about as often as one process would poll it: each of them has the same chance to meet it free, whatever their
// number, and if all polled every Min they would do more work than the holders. If it is granted so often that it is hardly ever left
// free, which paces notes in now, a poll finds it no sooner and only disturbs those who work: a quarter of them will do.
func (p *Poller) paces(w *watch, now *Sight) time.Duration {
	last := w.sight
	grants, since := now.Token-last.Token, now.At.Sub(last.At)
	overtaken := last.Token > 0 && grants > 0 && since < 4*p.Max
	w.shared = overtaken || w.shared && now.Age < p.Max
	now.Fleeting = overtaken && since < time.Duration(grants)*p.Min/2
	w.every = max(now.Age/4, p.Min)
	switch share := time.Duration(now.Crowd) * p.Min; {
	case now.Fleeting:
		w.every = max(w.every, 2*share)
	case w.shared:
		w.every = max(w.every, share/2)
	}
	w.every = min(w.every, p.Max)
	return w.every
}

// Start makes p ready. Nothing runs until something is watched.
func (p *Poller) Start() {
	p.watches = make(map[string]*watch)
	p.sooner = make(chan struct{}, 1)
	p.born = time.Now().Add(-rand.N(p.Max)) // processes that start together do not look together
	p.ctx, p.cancel = context.WithCancel(context.Background())
}

// Stop returns when nothing runs any more.
func (p *Poller) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
}

// Watch has key looked at, for the first time in Min or when its holder's lease expires. A key that is watched already is looked
// at again as if it were new.
func (p *Poller) Watch(key string, s Sight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	w := p.watch(key, s)
	every := p.Min
	if w.shared {
		every = w.every
	}
	w.due = p.after(w, every, s.Remaining)
	p.run()
}

// Later has key looked at after d, unless others look at it too.
func (p *Poller) Later(key string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watches[key]; w != nil && !w.shared {
		w.due = time.Now().Add(d)
	}
	p.nudge()
}

// Soon has some keys looked at at once.
func (p *Poller) Soon(keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if w := p.watches[key]; w != nil {
			w.due = time.Time{}
		}
	}
	p.nudge()
}

// Own has key looked at as seldom as can be: this process has it, and will hear of its release by itself. It wakes nobody, for it
// comes with every hand-over.
func (p *Poller) Own(key string, s Sight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	w := p.watch(key, s)
	w.due = p.after(w, p.Max, 0)
	if !p.running {
		p.run()
	}
}

// watch returns key's, which it makes if there is none, with what is known of key.
func (p *Poller) watch(key string, s Sight) *watch {
	w := p.watches[key]
	if w == nil {
		w = &watch{}
		p.watches[key] = w
	}
	if s.Token == 0 && w.sight.Token > 0 {
		s.Token, s.At = w.sight.Token, w.sight.At
	}
	w.sight = s
	return w
}

// Last is what was last seen of key.
func (p *Poller) Last(key string) Sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watches[key]; w != nil {
		return w.sight
	}
	return Sight{}
}

// Now has every key looked at at once: something may have happened that was not told.
func (p *Poller) Now() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.watches {
		if !w.shared {
			w.due = time.Time{}
		}
	}
	p.nudge()
}

// after fixes when w is looked at next: not far past the holder's expiry, and jittered, so that processes do not come in step.
// What is looked at as seldom as Max allows comes together with all that is, at the beats of one clock.
func (p *Poller) after(w *watch, interval, remaining time.Duration) time.Time {
	now := time.Now()
	w.last, w.interval = now, interval
	if remaining > 0 && remaining < interval {
		return now.Add(remaining + time.Millisecond)
	}
	if interval >= p.Max {
		return now.Add(p.Max - now.Sub(p.born)%p.Max)
	}
	return now.Add(time.Duration(float64(interval) * (0.9 + 0.2*rand.Float64())))
}

// run sees that the loop runs, and wakes it for what may be sooner than what it sleeps for.
func (p *Poller) run() {
	if !p.running {
		p.running = true
		p.wg.Go(p.loop)
	}
	p.nudge()
}

func (p *Poller) nudge() {
	select {
	case p.sooner <- struct{}{}:
	default:
	}
}

// loop ends when there is nothing left to watch.
func (p *Poller) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		keys, wait, more := p.next(time.Now())
		if !more {
			return
		}
		if len(keys) > 0 {
			p.look(keys)
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

// next returns the keys to look at now, or else how long to sleep. When a key is due, all go along that have a tenth of their
// interval behind them: it is one statement anyway. What is seldom looked at has its own beat.
func (p *Poller) next(now time.Time) (keys []string, wait time.Duration, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	if len(p.watches) == 0 || p.stopped {
		p.running = false
		return nil, 0, false
	}
	first := slices.MinFunc(slices.Collect(maps.Values(p.watches)), func(a, b *watch) int { return a.due.Compare(b.due) })
	if wait = first.due.Sub(now); wait > 0 {
		return nil, wait, true
	}
	for key, w := range p.watches {
		if !w.due.After(now) || w.interval < p.Max && now.Sub(w.last) >= w.interval/10 {
			keys = append(keys, key)
			w.due = now // no more than that: a zero due is a call for the next look
		}
	}
	slices.Sort(keys)
	return keys, 0, true
}

// forget drops what nobody waits for. Who waits has joined before he has his key watched, and that needs our mutex: so none is
// dropped that is about to be wanted.
func (p *Poller) forget() {
	maps.DeleteFunc(p.watches, func(key string, _ *watch) bool { return !p.Wanted(key) })
}

func (p *Poller) look(keys []string) {
	asked := time.Now()
	sights, err := p.Ask(p.ctx, keys)
	for i, key := range keys {
		s, ok := sights[key]
		s.Free = s.Free || !ok
		if news := p.note(key, s, asked, err); !news {
			keys[i] = ""
		}
	}
	for _, key := range keys {
		if key != "" {
			p.Seen(key, p.Last(key))
		}
	}
}

// note fixes when key is looked at next. It reports false if the answer is none, or was overtaken by a new Watch.
func (p *Poller) note(key string, s Sight, asked time.Time, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watches[key]
	switch {
	case w == nil || w.last.After(asked):
		return false
	case err != nil:
		w.due = p.after(w, min(max(2*w.interval, p.Min), p.Max), 0)
		return false
	}
	s.At = asked
	every := p.paces(w, &s)
	w.sight = s
	if w.due.IsZero() {
		return true // Soon or Now came meanwhile, for something that this look may not have seen
	}
	w.due = p.after(w, every, s.Remaining)
	return true
}
