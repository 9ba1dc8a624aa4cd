package rowlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
	"github.com/rowlockdb/rowlock/lease"
)

// fair is the waiters of a client that serves in order across processes. The order is the store's: each waiter has a ticket there,
// and whoever gives a key up passes it to the first. Here is only who of them is ours, and the poller that asks for all of them
// where they stand.
type fair struct {
	c      *Client
	store  lease.Queue
	poller waitq.Poller

	mu      sync.Mutex
	waiting map[string]*ticket // by owner
}

// ticket is one call of Lock that waits in order.
type ticket struct {
	lease.Ticket
	grant chan grant    // has at most one: the key was passed to it within this process
	turn  chan struct{} // what was seen of it says that there is something to do
	news  chan struct{} // where it stands has changed; nil if nobody looks

	// Guarded by the mutex:
	joined  time.Time // when it last showed a sign of life; zero: it has to
	asked   time.Time // when it was last asked where it stands
	place   lease.Place
	changed time.Time // when that last changed
	unsure  bool      // a sign of life may yet be written
	gaveUp  bool
}

func (t *ticket) id() string         { return string(t.Owner[:]) }
func (t *ticket) lease() lease.Lease { return lease.Lease{Key: t.Key, Owner: t.Owner} }

func startFair(c *Client, q lease.Queue) *fair {
	f := &fair{c: c, store: q, waiting: make(map[string]*ticket)}
	f.poller = waitq.Poller{Min: c.cfg.PollMin, Max: c.cfg.PollMax, Wanted: f.waits, Ask: f.look, Seen: f.seen}
	f.poller.Start()
	return f
}

func (f *fair) waits(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting[id] != nil
}

// wait takes a ticket, unless the key can be had at once, and stands until the key is passed to it or is its own to claim.
func (f *fair) wait(ctx context.Context, key string, r request) (*Lock, error) {
	began := time.Now()
	l, err := f.c.attempt(ctx, key, r, began)
	if !passing(err) || ctx.Err() != nil {
		return l, cutShort(ctx, err)
	}
	t, err := f.join(ctx, key, r, err)
	if err != nil {
		return nil, err
	}
	s := &stance{f: f, t: t, r: r, began: began}
	defer func() { f.end(ctx, t, l == nil) }() // also after a panic in the caller's hook: the key would be passed to nobody
	l, err = s.stand(ctx)
	return l, err
}

// end closes the books on a ticket: it was used up, or is given up.
func (f *fair) end(ctx context.Context, t *ticket, gaveUp bool) {
	f.mu.Lock()
	delete(f.waiting, t.id())
	t.gaveUp = gaveUp
	unsure := t.unsure
	f.mu.Unlock()
	if !gaveUp {
		return
	}
	f.giveUp(ctx, t)
	if unsure {
		f.c.janitor.cleanUp(t.Key, t.Owner)
	}
}

func cutShort(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return join(err, ctx.Err())
	}
	return err
}

// join is in the books before it is in the queue: it can be passed the key from then on.
func (f *fair) join(ctx context.Context, key string, r request, why error) (*ticket, error) {
	now := time.Now()
	t := &ticket{
		Ticket: lease.Ticket{
			AcquireRequest: lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: r.ttl, Note: r.note}, Priority: r.priority,
		},
		grant: make(chan grant, 1), turn: make(chan struct{}, 1), joined: now, changed: now,
	}
	if r.onWait != nil || f.c.cfg.Hooks.Waiting != nil {
		t.news = make(chan struct{}, 1)
	}
	seen := sightOf(why)
	t.place = lease.Place{Remaining: seen.Remaining, Note: seen.Note}
	f.mu.Lock()
	f.waiting[t.id()] = t
	f.mu.Unlock()
	err := f.store.Join(ctx, []lease.Ticket{t.Ticket})
	switch {
	case passing(err):
		f.mu.Lock()
		t.joined = time.Time{} // the poller joins it
		f.mu.Unlock()
	case err != nil:
		f.mu.Lock()
		delete(f.waiting, t.id())
		f.mu.Unlock()
		f.giveUp(ctx, t)
		f.c.janitor.cleanUp(key, t.Owner) // it may have been made all the same, and may yet be
		return nil, cutShort(ctx, join(why, err))
	}
	f.c.hints.listen()
	f.poller.Watch(t.id(), seen)
	return t, nil
}

// giveUp leaves no ticket behind, nor a key that was passed to it meanwhile: that goes to the next. What fails is the janitor's, or
// dies with the ticket's TTL.
func (f *fair) giveUp(ctx context.Context, t *ticket) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	err := f.store.Leave(ctx, []lease.Lease{t.lease()})
	if err == nil {
		_, err = f.pass(ctx, t.lease())
	}
	if err != nil {
		f.c.janitor.cleanUp(t.Key, t.Owner)
	}
}

// pass gives a lease up to whoever is first in the queue.
func (f *fair) pass(ctx context.Context, l lease.Lease) (lease.Passed, error) {
	sent := time.Now()
	answers, err := f.store.Pass(ctx, []lease.Lease{l})
	switch {
	case err != nil:
		return lease.Passed{}, err
	case len(answers) != 1:
		return lease.Passed{}, fmt.Errorf("%w: pass %q: %d answers to one request", lease.ErrCorrupt, l.Key, len(answers))
	}
	f.passed(l.Key, answers[0], sent)
	return answers[0], answers[0].Err
}

// passAll is pass for the end of the client. What fails is the janitor's.
func (f *fair) passAll(ctx context.Context, leases []lease.Lease) {
	sent := time.Now()
	answers, err := f.store.Pass(ctx, leases)
	for i, l := range leases {
		if err != nil || len(answers) != len(leases) || answers[i].Err != nil {
			f.c.janitor.cleanUp(l.Key, l.Owner)
			continue
		}
		f.passed(l.Key, answers[i], sent)
	}
}

// passed tells the new holder: here at once, elsewhere with a hint.
func (f *fair) passed(key string, p lease.Passed, sent time.Time) {
	if p.To.IsZero() || p.Err != nil {
		return
	}
	f.mu.Lock()
	t := f.waiting[string(p.To[:])]
	f.mu.Unlock()
	if t == nil {
		f.c.hints.announce(key)
		return
	}
	select {
	case t.grant <- grant{t.AcquireRequest, lease.Acquired{Granted: true, Token: p.Token}, sent}:
	default: // it has been told of this very grant
	}
}

// call has those who wait for key, here, look where they stand; "" is every key.
func (f *fair) call(key string) {
	if key == "" {
		f.poller.Now()
		return
	}
	var ids []string
	f.mu.Lock()
	for id, t := range f.waiting {
		if t.Key == key {
			ids = append(ids, id)
		}
	}
	f.mu.Unlock()
	f.poller.Soon(ids...)
}

// look is the poller's question. First it shows signs of life for those whose last is a third of their TTL ago.
func (f *fair) look(ctx context.Context, ids []string) (map[string]waitq.Sight, error) {
	ctx, cancel := context.WithTimeout(ctx, unlockTimeout)
	defer cancel()
	f.c.hints.listen()
	asked := time.Now()
	waiters, silent := f.among(ids, asked)
	if len(silent) > 0 {
		if err := f.beat(ctx, silent, asked); err != nil {
			return nil, err
		}
	}
	if len(waiters) == 0 {
		return nil, nil
	}
	places, err := f.store.Places(ctx, waiters)
	if err == nil && len(places) != len(waiters) {
		err = fmt.Errorf("%w: %d places for %d tickets", lease.ErrCorrupt, len(places), len(waiters))
	}
	if err != nil {
		return nil, err
	}
	return f.note(waiters, places, asked), nil
}

// among returns those of ids who still wait, and of them those who have been silent for too long.
func (f *fair) among(ids []string, now time.Time) (waiters []lease.Lease, silent []*ticket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		t := f.waiting[id]
		if t == nil {
			continue
		}
		waiters = append(waiters, t.lease())
		if now.Sub(t.joined) >= t.TTL/3 {
			silent = append(silent, t)
		}
	}
	slices.SortFunc(waiters, func(a, b lease.Lease) int { return cmp.Compare(a.Key, b.Key) })
	return waiters, silent
}

// beat shows signs of life. Whoever has gone meanwhile may have got a new ticket by it, after he had taken back the old one.
func (f *fair) beat(ctx context.Context, silent []*ticket, now time.Time) error {
	tickets := make([]lease.Ticket, len(silent))
	for i, t := range silent {
		tickets[i] = t.Ticket
	}
	err := f.store.Join(ctx, tickets)
	served := f.alive(silent, now, err)
	if len(served) > 0 {
		_ = f.store.Leave(ctx, served) // the lease is in use: the janitor would release it
	}
	return err
}

// alive notes a sign of life, leaves to the janitor what those may have who gave up, and returns who has the key.
func (f *fair) alive(tickets []*ticket, when time.Time, err error) (served []lease.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range tickets {
		switch {
		case f.waiting[t.id()] != nil && err == nil:
			t.joined = when
		case f.waiting[t.id()] != nil:
			t.unsure = true
		case t.gaveUp:
			f.c.janitor.cleanUp(t.Key, t.Owner)
		default:
			served = append(served, t.lease())
		}
	}
	return served
}

// note keeps what was seen. Who is far from the front is looked at more rarely: as many must go before.
func (f *fair) note(waiters []lease.Lease, places []lease.Place, asked time.Time) map[string]waitq.Sight {
	f.mu.Lock()
	defer f.mu.Unlock()
	sights := make(map[string]waitq.Sight, len(waiters))
	for i, l := range waiters {
		id, p := string(l.Owner[:]), places[i]
		t := f.waiting[id]
		if t == nil {
			continue
		}
		if p.Missing {
			t.joined = time.Time{}
		}
		changed := p.Ahead != t.place.Ahead || p.Note != t.place.Note
		if changed {
			t.changed = asked
		}
		if t.news != nil && (changed || t.asked.IsZero()) { // the first look is news, whatever it saw
			signal(t.news)
		}
		t.place, t.asked = p, asked
		mine := p.Granted || p.Err != nil || p.Ahead == 0 && p.Remaining <= 0 && !p.Missing
		sights[id] = waitq.Sight{Free: mine, Age: asked.Sub(t.changed) * time.Duration(1+p.Ahead), Remaining: max(0, p.Remaining), Note: p.Note}
	}
	return sights
}

// seen calls whoever has something to do.
func (f *fair) seen(id string, s waitq.Sight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.waiting[id]; t != nil && s.Free {
		signal(t.turn)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is there already
	}
}
