// Package observe tells readers what becomes of keys. It compares listings of the store: one
// goroutine lists for all readers of a client, however many there are, and no reader holds up
// another.
package observe

import (
	"context"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// soonest is the least time between two listings, after the client's own events too.
const soonest = 50 * time.Millisecond

// Poller lists keys while it has a reader. Its exported fields are set before the first reader.
type Poller struct {
	Store lease.Store
	// Every is the time between two listings.
	Every time.Duration
	// Closed ends all reading.
	Closed <-chan struct{}

	active atomic.Bool

	mu      sync.Mutex
	readers map[*reader]struct{}
	running bool
	loop    sync.WaitGroup
	kick    chan struct{}
	lost    map[string]lease.Token // tokens that were told as lost, until the rows say so

	last   listing // the loop's alone
	forced records // the loop's alone
}

// records is what the loop knows of the records of forced releases.
type records struct {
	newest map[lease.Owner]bool // by ID; nil before the first listing
	denied bool                 // this user may not read them
}

// New returns a poller without readers, which does nothing.
func New(p *Poller) *Poller {
	p.readers, p.lost = make(map[*reader]struct{}), make(map[string]lease.Token)
	p.kick = make(chan struct{}, 1)
	return p
}

// Watch yields what becomes of the keys with this prefix, beginning with those that are held. It
// begins when it is ranged over.
func (p *Poller) Watch(ctx context.Context, prefix string) iter.Seq2[lease.Event, error] {
	return func(yield func(lease.Event, error) bool) {
		r := &reader{prefix: prefix, fresh: true, pending: make(map[slot]told), news: make(chan struct{}, 1)}
		p.begin(r)
		defer p.end(r)
		r.all(ctx, p.Closed)(yield)
	}
}

func (p *Poller) begin(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers[r] = struct{}{}
	p.active.Store(true)
	if !p.running {
		p.running = true
		p.loop.Go(p.run)
	}
	p.nudge()
}

func (p *Poller) end(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.readers, r)
	p.active.Store(len(p.readers) > 0)
	p.nudge() // the last one ends the loop
}

// Stop returns when the loop has ended. Closed is closed, so that no reader goes on.
func (p *Poller) Stop() { p.loop.Wait() }

// Nudge is called when the client itself has taken or released a key: the next listing comes
// sooner. It costs an atomic load without a reader.
func (p *Poller) Nudge() {
	if p.active.Load() {
		p.nudge()
	}
}

func (p *Poller) nudge() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Lost tells that a lock of this client has ended against its holder's will.
func (p *Poller) Lost(l lease.Lease, note string) {
	if !p.active.Load() {
		return
	}
	e := lease.Event{Kind: lease.EventLost, Key: l.Key, Token: l.Token}
	e.Identity, e.Note = lease.SplitNote(note)
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.readers {
		if r.wants(l.Key) {
			p.lost[l.Key] = l.Token
			r.tell(e)
		}
	}
	p.nudge()
}

// run lists until there is no reader.
func (p *Poller) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-p.Closed:
			return
		case <-next.C:
		}
		if !p.round(ctx) {
			return
		}
		last := time.Now()
		next.Reset(p.Every)
		select {
		case <-p.Closed:
			return
		case <-p.kick:
			next.Reset(max(0, min(soonest, p.Every)-time.Since(last)))
		case <-next.C:
			next.Reset(0)
		}
	}
}

// round lists once and tells the differences. It reports false if there is no reader any more.
func (p *Poller) round(ctx context.Context) bool {
	set, before := p.begun()
	if len(set) == 0 {
		return false
	}
	prefixes := cover(set)
	now, err := p.list(ctx, prefixes)
	var ended []lease.Event
	var forced []lease.Forced
	if err == nil {
		ended, err = p.endings(ctx, now, prefixes)
	}
	if err == nil { // or they would count as told, and be told to no reader
		forced = p.newlyForced(ctx, now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		for _, r := range set {
			r.fail(err)
		}
		return true
	}
	p.tellBad(set, now.bad)
	p.compare(set, now.held, p.tellForced(set, forced, ended))
	p.last = now
	for key, token := range before { // told before the listing, which does not have it
		if _, held := now.held[key]; !held && p.lost[key] == token {
			delete(p.lost, key)
		}
	}
	return true
}

// begun returns the readers that the next listing is for, and what was told as lost before it. A
// reader that begins later waits for the next.
func (p *Poller) begun() (set []*reader, lost map[string]lease.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.readers {
		set = append(set, r)
	}
	if len(set) == 0 {
		p.running = false
		p.last, p.lost = listing{}, make(map[string]lease.Token)
		p.forced.newest = nil
	}
	return set, maps.Clone(p.lost)
}

// tellBad tells of each row once that cannot be read, until it can be. Comes before compare, after
// which no reader is fresh.
func (p *Poller) tellBad(set []*reader, bad map[string]error) {
	for key, why := range bad {
		_, known := p.last.bad[key]
		for _, reader := range set {
			if reader.wants(key) && (!known || reader.fresh) {
				reader.tellBad(key, why)
			}
		}
	}
}

// compare tells the readers of a listing what is new in it, and what has ended.
func (p *Poller) compare(set []*reader, now map[string]lease.Record, ended []lease.Event) {
	for key, r := range now {
		if r.Err != nil || p.lost[key] == r.Token {
			continue // its row lasts longer than its holder may trust it
		}
		delete(p.lost, key)
		kind := p.changed(&r)
		for _, reader := range set {
			if reader.wants(key) && (kind != 0 || reader.fresh) {
				reader.tell(eventOf(max(kind, lease.EventGranted), &r))
			}
		}
	}
	for _, e := range ended {
		for _, reader := range set {
			if !reader.fresh && reader.wants(e.Key) && p.lost[e.Key] != e.Token {
				reader.tell(e)
			}
		}
		delete(p.lost, e.Key)
	}
	for _, reader := range set {
		reader.fresh = false
	}
}

// changed is what became of a key that is held, or 0.
func (p *Poller) changed(now *lease.Record) lease.EventKind {
	switch before, was := p.last.held[now.Key]; {
	case was && before.Placement != now.Placement:
		return lease.EventMoved
	case !was || before.Token != now.Token:
		return lease.EventGranted
	}
	return 0
}
