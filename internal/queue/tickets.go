package queue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Tickets is the queue of a client that serves in order across processes. The order is the store's:
// each waiter has a ticket there, and a holder passes the key to the head of the queue. Tickets
// keeps which of them are this process's, and polls their positions.
type Tickets struct {
	base

	mu      sync.Mutex
	waiting map[string]*ticket // by owner
}

// NewTickets returns a queue without waiters.
func NewTickets(cfg Config) *Tickets {
	q := &Tickets{base: base{cfg: cfg, store: cfg.Asker.Store}, waiting: make(map[string]*ticket)}
	q.poller = newPoller(polling{
		Min: cfg.PollMin, Max: cfg.PollMax, Wanted: q.waits, Read: q.read, Found: q.found,
	})
	cfg.Notify.Heard, cfg.Notify.Chosen, cfg.Notify.Everyone = q.Wake, q.Wake, true
	q.notify = newNotifications(q.store, cfg.Notify)
	return q
}

// Stop ends polling and notifications. The last waiter has left, and the last lease was given up.
func (q *Tickets) Stop() {
	q.poller.Stop()
	q.notify.Stop()
}

// Granted notes nothing: a fair queue needs no budget.
func (q *Tickets) Granted(string, lease.Token, time.Time, time.Duration) {}

// Wake has the positions of the waiters of key polled. "" is every key.
func (q *Tickets) Wake(key string) {
	if key == "" {
		q.poller.Now()
		return
	}
	var ids []string
	q.mu.Lock()
	for id, t := range q.waiting {
		if t.Key == key {
			ids = append(ids, id)
		}
	}
	q.mu.Unlock()
	q.poller.Soon(ids...)
}

// Kept does nothing: the first ticket asks when the lease ends.
func (q *Tickets) Kept(string) {}

// GiveUp passes each lease to the head of its queue, and notifies the new holders.
func (q *Tickets) GiveUp(ctx context.Context, items []Release) {
	q.leave(ctx, items)
	leases := leasesOf(items)
	sent := time.Now()
	var answers []lease.Passed
	if len(leases) > 0 {
		answers = q.store.Pass(ctx, leases)
	}
	var elsewhere []string
	for n := range items {
		i, a := &items[n], lease.Passed{Gone: true}
		if i.state.done {
			continue
		}
		if !i.state.went {
			a, answers = answers[0], answers[1:]
		}
		i.Answer.Gone, i.Answer.Err = a.Gone, a.Err
		key := i.Lease.Key
		if a.Gone && i.Left { // a transaction of the holder's, which is over, has released it
			q.Wake(key)
			elsewhere = append(elsewhere, key)
		}
		switch {
		case a.Err != nil:
		case !a.To.IsZero() && !q.given(a, sent),
			// A slot has no queue, but another process may watch it. For any other key nothing is asked.
			a.To.IsZero() && !a.Gone && i.Slot && q.notify.sends.Load() &&
				q.store.AnyAwaited(ctx, q.notify.process, key):
			elsewhere = append(elsewhere, key)
		}
	}
	q.notify.Announce(elsewhere...)
}

// leave releases the leases of members of reader groups. A group that has ended is passed to none:
// the head of the queue claims its key.
func (q *Tickets) leave(ctx context.Context, items []Release) {
	var members []*Release
	var leases []lease.Lease
	for n := range items {
		if i := &items[n]; i.Lease.Shared && !i.state.done {
			i.state.done = true
			members, leases = append(members, i), append(leases, i.Lease)
		}
	}
	if len(members) == 0 {
		return
	}
	var free []string
	for n, a := range q.store.Release(ctx, leases) {
		i := members[n]
		if i.Answer.Gone, i.Answer.Err = a.Gone, a.Err; a.Err == nil && !a.Shared {
			free = append(free, i.Lease.Key)
			q.Wake(i.Lease.Key)
		}
	}
	q.notify.Announce(free...)
}

// given gives a lease that was passed on to its new holder. It reports false if the holder is in
// another process.
func (q *Tickets) given(p lease.Passed, sent time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.waiting[string(p.To[:])]
	if t == nil {
		return false
	}
	given := signal{Given: true, Grant: t.grants(p.Token, sent)}
	if time.Since(sent) >= t.TTL/2 { // since when the lease counts; Attempt renews it
		given, t.place = signal{}, lease.QueuePosition{Granted: true, Token: p.Token}
	}
	select {
	case t.signal <- given:
	default: // it has been given this very grant
	}
	return true
}

func (q *Tickets) waits(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[id] != nil
}

// read is the poller's statement. First it sends heartbeats that are due.
func (q *Tickets) read(ctx context.Context, ids []string) (map[string]observed, error) {
	ctx, cancel := context.WithTimeout(ctx, adapter.Timeout)
	defer cancel()
	q.notify.Listen()
	asked := time.Now()
	waiters, silent := q.among(ids, asked)
	if len(silent) > 0 {
		if err := q.beat(ctx, silent, asked); err != nil {
			return nil, err
		}
	}
	if len(waiters) == 0 {
		return nil, nil
	}
	places, err := q.store.QueuePositions(ctx, waiters)
	if err != nil {
		return nil, err
	}
	return q.note(waiters, places, asked), nil
}

// among returns those of ids that still wait, and of them those that need a heartbeat, if the last
// of any is a third of its TTL old. What is half as old comes along, or callers that have come one
// after the other would have a statement each.
func (q *Tickets) among(ids []string, now time.Time) (waiters []lease.Lease, silent []*ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := false
	for _, id := range ids {
		t := q.waiting[id]
		if t == nil {
			continue
		}
		waiters = append(waiters, t.lease())
		if age := now.Sub(t.joined); age >= t.TTL/6 {
			silent, due = append(silent, t), due || age >= t.TTL/3
		}
	}
	if !due {
		silent = nil
	}
	for _, t := range silent {
		t.beating = true
	}
	slices.SortFunc(waiters, func(a, b lease.Lease) int { return cmp.Compare(a.Key, b.Key) })
	return waiters, silent
}

// beat sends heartbeats. A waiter that has left meanwhile may have got a new ticket by it, after it
// had taken back its old one.
func (q *Tickets) beat(ctx context.Context, silent []*ticket, now time.Time) error {
	tickets := make([]lease.Ticket, len(silent))
	for i, t := range silent {
		tickets[i] = t.Ticket
	}
	unknown, err := q.store.Join(ctx, tickets)
	var gaveUp, served []lease.Lease
	q.mu.Lock()
	for _, t := range silent {
		t.beating = false
		switch {
		case q.waiting[t.id()] != nil:
			if t.unsure = t.unsure || unknown || err != nil; err == nil {
				t.joined = now
			}
		case t.gaveUp:
			gaveUp = append(gaveUp, t.lease())
		default:
			served = append(served, t.lease())
		}
	}
	q.mu.Unlock()
	q.cfg.Asker.Orphans.AddLeases(gaveUp...)
	if len(served) > 0 {
		_ = q.store.Leave(ctx, served) // the lease is in use: the orphan cleaner would release it
	}
	return err
}

// note keeps what was read. A waiter far from the head is polled more rarely, because all before it
// must be served first. No age counts beyond the TTL: the pause is a quarter of it, and heartbeats
// go with the polls, so that a ticket would die in a longer pause, and lose its place.
func (q *Tickets) note(
	waiters []lease.Lease, places []lease.QueuePosition, asked time.Time,
) map[string]observed {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := make(map[string]observed, len(waiters))
	for i, l := range waiters {
		id, p := string(l.Owner[:]), places[i]
		t := q.waiting[id]
		if t == nil {
			continue
		}
		t.note(p, asked)
		mine := p.Granted || p.Err != nil || p.Ahead == 0 && p.Remaining <= 0 && !p.Missing
		found[id] = observed{
			Free: mine, Age: min(asked.Sub(t.changed)*time.Duration(1+p.Ahead), t.TTL),
			Remaining: max(0, p.Remaining), Note: p.Note,
		}
	}
	return found
}

// found wakes a waiter that has something to do.
func (q *Tickets) found(id string, o observed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.waiting[id]; t != nil && o.Free && len(t.signal) == 0 {
		t.signal <- signal{} // has room: it is empty, and given sends at most one besides
	}
}
