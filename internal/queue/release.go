package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// probeTimeout bounds how long GiveUp asks whether a row is locked, besides the release itself.
	probeTimeout = 250 * time.Millisecond
	// openTimeout is the same where a transaction of the holder's certainly has not ended. The
	// release would wait for that transaction, so that more of the time goes to the question. What
	// is left suffices for a release if the answer is that nothing is in its way.
	openTimeout = adapter.Timeout / 2
	// probeTTL is short, so that the key is free soon if the release fails after the probe.
	probeTTL = time.Second
)

// Release is a lease to give up.
type Release struct {
	Lease lease.Lease
	// Keep leaves the key locked for so long, if it is more than 0: the lease then ends by itself.
	Keep time.Duration
	// Left: a transaction of the holder's may have released the lease already. Freed: it has, and was
	// committed.
	Left, Freed bool
	// Passed: that transaction has handed the lease to the next waiter, and nothing is to be released.
	Passed bool
	// Fenced: a transaction of the holder's may have the row locked. Open: it certainly has not ended.
	Fenced, Open bool
	// Slot: the key is a slot of a limit, and has no queue.
	Slot bool
	// Next gets the slot, if it is not nil.
	Next *NextOwner
	// Late is nil unless a copy of the granting request may still run or, with Keep, of a renewal. It
	// reports whether a renewal is under way.
	Late func() bool

	Answer Released
	state  releasing
}

// Released is what became of a lease.
type Released struct {
	// Gone says that the row did not name the lease any more. Forced says that an operator had taken
	// it away, where Left would explain it otherwise.
	Gone, Forced bool
	// Err wraps lease.ErrUnknown. The orphan cleaner releases the lease, or keeps it for Keep.
	Err error
}

// releasing is how far a Release has come.
type releasing struct {
	// freed is the lease that the store is to release: that of the Release, or the one that a
	// hand-over has given to a waiter which had left.
	freed lease.Lease
	got   lease.Released // the store's answer
	done  bool           // it is not to be released: it was kept or passed on, or its row is locked
	went  bool           // a transaction of the holder's has certainly released it
	// passed: a hand-over without an answer may have given the lease away.
	passed bool
	over   bool // this process has had the key for long enough
	leaves bool // a transaction that is still open has released it
}

// NextOwner is the next owner of a slot, and what it was answered.
type NextOwner struct {
	Limit      string // its name
	Generation int64  // of the limit when the slot was granted; 0: not known
	To         lease.AcquireRequest

	// Sent is the moment before the request was sent. Answer grants nothing if it was not.
	Sent   time.Time
	Answer lease.Acquired
}

// leasesOf returns the leases that the store is to release, in the order of the items.
func leasesOf(items []Release) []lease.Lease {
	leases := make([]lease.Lease, 0, len(items))
	for i := range items {
		if state := &items[i].state; !state.done && !state.went {
			leases = append(leases, state.freed)
		}
	}
	return leases
}

// Releaser gives leases up. Its fields are set before its first call.
type Releaser struct {
	Store   *adapter.Store
	Queue   Queue
	Orphans *cleanup.Cleaner

	sharedDeadline
}

// Leases gives leases up whose holders expect no answer.
func (r *Releaser) Leases(ctx context.Context, leases []lease.Lease) {
	items := make([]Release, len(leases))
	for i, l := range leases {
		items[i].Lease = l
	}
	r.GiveUp(r.Within(ctx), items)
}

// GiveUp gives every lease up, in as few calls to the store as there are ways to do it, and answers
// in Answer.
func (r *Releaser) GiveUp(ctx context.Context, items []Release) {
	if len(items) == 0 {
		return
	}
	plain := true
	for n := range items {
		i := &items[n]
		// A reader's transaction has left the group, which its release has yet to end.
		i.state.freed, i.state.went = i.Lease, i.Freed && !i.Lease.Shared
		plain = plain && i.Keep <= 0 && !i.Open && !i.Left
	}
	answered := false
	defer r.clean(items, &answered)
	if plain || r.prepare(ctx, items) {
		r.Queue.GiveUp(ctx, items)
	}
	answered = true
	for n := range items {
		if a := &items[n].Answer; a.Err != nil || a.Gone {
			r.explain(ctx, items)
			break
		}
	}
}

// prepare keeps what is to be kept, finds out what a release would wait for in vain, and what is
// released already. It reports whether something is left to release.
func (r *Releaser) prepare(ctx context.Context, items []Release) (due bool) {
	r.keep(ctx, items)
	r.probe(ctx, openTimeout, items, func(i *Release) bool { return i.Open && i.Keep <= 0 })
	for n := range items {
		i := &items[n]
		i.state.done = i.Keep > 0 || i.Answer.Err != nil || i.Passed
		due = due || !i.state.done
	}
	r.look(ctx, items)
	return due
}

// unexplained reports whether the answer may be due to a transaction of the holder's that is not
// known yet, or to an operator.
func unexplained(i *Release) bool {
	known := i.Keep > 0 || i.Open && i.state.done
	return !known && (i.Fenced && i.Answer.Err != nil || i.Left && i.Answer.Gone)
}

// explain finds out the cause of what is unexplained.
func (r *Releaser) explain(ctx context.Context, items []Release) {
	for n := range items {
		if i := &items[n]; unexplained(i) && i.Left && !i.state.went && i.Answer.Err == nil {
			i.Answer.Forced = r.Forced(ctx, i.Lease)
		}
	}
	r.probe(ctx, probeTimeout, items, func(i *Release) bool {
		return unexplained(i) && i.Answer.Err != nil
	})
}

// clean leaves to the orphan cleaner what is not known to be released. Of a lease that leaves with
// an open transaction the cleaner finds that it was committed, or releases it after a rollback.
// What was not answered has no error: a driver has panicked.
func (r *Releaser) clean(items []Release, answered *bool) {
	var orphans []lease.Lease
	for n := range items {
		i := &items[n]
		if i.Answer.Err != nil && !errors.Is(i.Answer.Err, lease.ErrUnknown) {
			i.Answer.Err = oneline.Join(lease.ErrUnknown, i.Answer.Err)
		}
		if i.Late != nil && (i.Keep <= 0 || i.Answer.Gone) {
			orphans = append(orphans, i.Lease)
		}
		if i.Keep <= 0 && (i.Answer.Err != nil || !*answered) {
			orphans = append(orphans, i.state.freed)
			r.Queue.Kept(i.Lease.Key) // what waited for the end of the release would do so for ever
		}
		if i.state.leaves { // its holder has said when the key is to be free
			i.Answer.Err = nil
		}
	}
	if orphans != nil {
		r.Orphans.AddLeases(orphans...)
	}
}

// keep makes each lease end when its Keep does. The cleaner goes on asking after an error, behind a
// fence, and if a request from before may give the lease another TTL: it would end sooner or later.
func (r *Releaser) keep(ctx context.Context, items []Release) {
	ctx, cancel := context.WithTimeout(ctx, adapter.Timeout)
	defer cancel()
	ttl := func(i *Release) time.Duration { return i.Keep }
	r.renew(ctx, items, ttl, func(i *Release, a lease.Renewed) {
		i.Answer.Gone = a.Err == nil && a.Outcome == lease.Lost
		if a.Err != nil {
			i.Answer.Err = oneline.Join(fmt.Errorf("%w: unlock %q", lease.ErrUnknown, i.Lease.Key), a.Err)
		}
		if a.Err != nil || a.Outcome == lease.Busy || i.Late != nil && !i.Answer.Gone {
			r.Orphans.Keep(i.Keep, i.Late, i.Lease)
		}
		r.Queue.Kept(i.Lease.Key)
	})
}

// probe names the holder's own transaction as the cause for each item of some whose row is locked,
// in one call to the store. A renewal shows the lock, because it waits for no row. A lease that it
// does extend is about to be released.
func (r *Releaser) probe(
	ctx context.Context, within time.Duration, items []Release, some func(*Release) bool,
) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	ttl := func(i *Release) time.Duration {
		if some(i) {
			return probeTTL
		}
		return 0
	}
	r.renew(ctx, items, ttl, func(i *Release, a lease.Renewed) {
		if a.Err == nil && a.Outcome == lease.Busy {
			i.Answer.Err, i.state.leaves = stuck(i), i.Left
		}
	})
}

// renew renews the leases to which ttl gives more than 0.
func (r *Releaser) renew(
	ctx context.Context, items []Release, ttl func(*Release) time.Duration,
	answered func(*Release, lease.Renewed),
) {
	var asked []*Release
	var reqs []lease.RenewRequest
	for n := range items {
		i := &items[n]
		if d := ttl(i); d > 0 {
			asked = append(asked, i)
			reqs = append(reqs, lease.RenewRequest{Lease: i.Lease, TTL: d})
		}
	}
	if len(reqs) == 0 {
		return
	}
	for n, a := range r.Store.Renew(ctx, reqs) {
		answered(asked[n], a)
	}
}

func stuck(i *Release) error {
	const text = "its row is locked by a transaction that has fenced this lock and has not ended: " +
		"end it before Unlock, or use UnlockTx"
	if i.Answer.Err == nil {
		return fmt.Errorf("%w: unlock %q: %s", lease.ErrUnknown, i.Lease.Key, text)
	}
	return fmt.Errorf("%w: unlock %q: it seems that %s (%w)", lease.ErrUnknown, i.Lease.Key, text, i.Answer.Err)
}
