package queue

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Config says what a Queue is made of.
type Config struct {
	Asker  *Asker
	Notify NotifyConfig // without Heard, Chosen and Everyone
	// PollMin and PollMax bound the pause between two polls.
	PollMin, PollMax time.Duration
	// HandOvers is how many grants in a row a process may keep a key. Tickets need no such budget.
	HandOvers int
}

// Attempts is the queue of a client whose processes compete: waiters of one process are served in
// order, and between processes the first attempt at a free key gets it. A process keeps a key among
// its own waiters for a bounded time only.
type Attempts struct {
	base
	keys
}

// base is what both queues have.
type base struct {
	cfg    Config
	store  *adapter.Store
	poller *poller
	notify *notifications
}

// NewAttempts returns a queue without waiters.
func NewAttempts(cfg Config) *Attempts {
	q := &Attempts{base: base{cfg: cfg, store: cfg.Asker.Store}}
	q.keys.policy = policy{
		grants: cfg.HandOvers, lasts: cfg.PollMax, slice: cfg.PollMin, watches: cfg.Asker.Watches,
	}
	q.poller = newPoller(polling{
		Min: cfg.PollMin, Max: cfg.PollMax,
		Wanted: func(key string) bool { return q.keys.len(key) > 0 },
		Read:   q.read, Found: q.found,
	})
	cfg.Notify.Heard, cfg.Notify.Chosen = q.Wake, q.chosen
	q.notify = newNotifications(q.store, cfg.Notify)
	return q
}

// Stop ends polling and notifications. The last waiter has left, and the last lease was given up.
func (q *Attempts) Stop() {
	q.poller.Stop()
	q.notify.Announce(q.keys.takePostponed()...)
	q.notify.Stop()
}

// Wake has those of this process that wait for key find out whether it is free. "" is every key.
func (q *Attempts) Wake(key string) {
	if key == "" {
		q.poller.Now()
		return
	}
	q.keys.wake(key)
}

// Freed wakes the waiters of a key, in all processes, that was freed by other means than GiveUp.
func (q *base) Freed(key string) {
	q.notify.cfg.Heard(key)
	q.notify.Announce(key)
}

// Watch listens for keys that other processes release.
func (q *base) Watch(keys []string) *Watch { return q.notify.Watch(keys) }

// Notifications returns how many this process has heard, and whether it has begun to listen and has
// not ended it. It does not know of a connection that the store has lost.
func (q *base) Notifications() (heard int64, connected bool) {
	q.notify.mu.Lock()
	defer q.notify.mu.Unlock()
	return q.notify.heard.Load(), q.notify.connected
}

// watch has the poller poll key, with what this process knows of how often it changes hands.
func (q *Attempts) watch(key string, o observed) {
	last := q.keys.of(key)
	o.Token, o.At = last.token, last.at
	q.poller.Watch(key, o)
}

// read is the poller's statement. It registers this process first, so that a release after the read
// is announced to it.
func (q *Attempts) read(ctx context.Context, keys []string) (map[string]observed, error) {
	ctx, cancel := context.WithTimeout(ctx, adapter.Timeout)
	defer cancel()
	q.notify.Register(ctx, keys)
	records, err := q.store.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	waiters := q.notify.Waiters(ctx, records)
	found := make(map[string]observed, len(records))
	for i, r := range records {
		found[r.Key] = observed{
			// The head of a key whose row cannot be read asks for it, and is told why.
			Free: !r.Held && q.store.Reaches(r.Placement) || r.Err != nil, Age: r.Age, Remaining: r.Remaining,
			Note: r.Note, Token: r.Token, Waiters: waiters[i],
			Shared:  r.Held && r.Shared,
			Expired: !r.Held && !r.Owner.IsZero(), // a release clears the owner
		}
	}
	return found, err
}

// found has the head of key's queue ask if the key may be free. The head asks for a fleeting key
// whatever the poll has read: until a poll has found it free, its holder has it again.
func (q *Attempts) found(key string, o observed) {
	if o.Free || o.Fleeting && !q.notify.wakes.Load() {
		if rest := q.precedence(key, o); rest > 0 {
			q.poller.Later(key, rest)
			return
		}
		q.keys.wake(key)
		return
	}
	q.keys.moved(key)
}
