// Package bidq is the queue of a client whose processes bid against each other: waiters of one
// process are served in order, and between processes the first bid for a free key gets it. A
// process keeps a key among its own waiters for a bounded time only.
package bidq

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/internal/hint"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/internal/waitq"
	"github.com/rowlockdb/rowlock/lease"
)

type (
	waiter = waitq.Waiter[place, acquire.Grants]
	signal = waitq.Signal[acquire.Grants]
)

// Config are the parts of a Queue.
type Config struct {
	Asker *acquire.Asker
	Hints hint.Config // without Heard and Chosen
	// PollMin and PollMax bound the pause between two polls.
	PollMin, PollMax time.Duration
	// HandOvers is how many grants in a row a process may keep a key.
	HandOvers int
}

// Queue is the waiters of one client. Make it with New and end it with Stop.
type Queue struct {
	cfg    Config
	store  *seam.Store
	local  *waitq.Queues[place, acquire.Grants]
	budget waitq.Budget
	poller waitq.Poller
	hints  *hint.Hints
}

// New returns a queue without waiters.
func New(cfg Config) *Queue {
	q := &Queue{cfg: cfg, store: cfg.Asker.Store, local: waitq.New[place, acquire.Grants]()}
	q.budget.Grants, q.budget.For = cfg.HandOvers, cfg.PollMax
	q.poller = waitq.Poller{
		Min: cfg.PollMin, Max: cfg.PollMax,
		Wanted: func(key string) bool { return q.local.Len(key) > 0 },
		Read:   q.read, Found: q.found,
	}
	q.poller.Start()
	cfg.Hints.Heard, cfg.Hints.Chosen = q.Wake, q.chosen
	q.hints = hint.New(q.store, cfg.Hints)
	return q
}

// Stop ends polling and hints. The last waiter has left, and the last lease was given up.
func (q *Queue) Stop() {
	q.poller.Stop()
	q.hints.Stop()
}

// Wake has those of this process that wait for key find out whether it is free. "" is every key.
func (q *Queue) Wake(key string) {
	if key == "" {
		q.poller.Now()
		return
	}
	q.local.Wake(key)
}

// Freed wakes the waiters of a key, in all processes, that was freed by other means than GiveUp.
func (q *Queue) Freed(key string) {
	q.Wake(key)
	q.hints.Announce(key)
}

// Watch hears of keys that other processes release.
func (q *Queue) Watch(keys []string) *hint.Watch { return q.hints.Watch(keys) }

// Hints returns how many notifications this process has heard, and whether it listens.
func (q *Queue) Hints() (heard int64, connected bool) { return q.hints.Heard(), q.hints.Connected() }

// Granted notes a grant to this process.
func (q *Queue) Granted(key string, token int64, sent time.Time) {
	q.budget.Granted(key, token, sent, time.Since(sent))
}

// watch has the poller poll key, with what this process knows of how often it changes hands.
func (q *Queue) watch(key string, o waitq.Observed) {
	last := q.budget.Of(key)
	o.Token, o.At = last.Token, last.At
	q.poller.Watch(key, o)
}

// read is the poller's statement. It registers this process first, so that a release after the read
// is announced to it.
func (q *Queue) read(ctx context.Context, keys []string) (map[string]waitq.Observed, error) {
	ctx, cancel := context.WithTimeout(ctx, seam.Timeout)
	defer cancel()
	q.hints.Register(ctx, keys)
	records, err := q.store.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return nil, err
	}
	q.hints.Count(ctx, records)
	found := make(map[string]waitq.Observed, len(records))
	for _, r := range records {
		found[r.Key] = waitq.Observed{
			// The head of a key whose row cannot be read asks for it, and is told why.
			Free: !r.Held && q.store.Reaches(r.Home) || r.Err != nil, Age: r.Age, Remaining: r.Remaining,
			Note: r.Note, Token: r.Token, Crowd: q.hints.Crowd(r.Key),
			Shared:  r.Held && r.Shared,
			Expired: !r.Held && !r.Owner.IsZero(), // a release clears the owner
		}
	}
	return found, nil
}

// found has the head of key's queue bid if the key may be free. The head bids for a fleeting key
// whatever the poll has read: until a poll has found it free, its holder has it again.
func (q *Queue) found(key string, o waitq.Observed) {
	if o.Free || o.Fleeting && !q.hints.Wakes() {
		if rest := q.precedence(key, o); rest > 0 {
			q.poller.Later(key, rest)
			return
		}
		q.local.Wake(key)
		return
	}
	q.local.Notify(key)
}
