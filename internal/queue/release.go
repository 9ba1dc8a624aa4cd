package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// probeTimeout bounds how long GiveUp asks whether a row is locked, besides the release itself.
	probeTimeout = 250 * time.Millisecond
	// openTimeout is the same where a transaction of the holder's certainly has not ended. The
	// release would wait for that transaction, so that more of the time goes to the question. What
	// is left suffices for a release if the answer is that nothing is in its way.
	openTimeout = seam.Timeout / 2
	// probeTTL is short, so that the key is free soon if the release fails after the probe.
	probeTTL = time.Second
)

// Release is a lease to give up, and what became of it.
type Release struct {
	Lease lease.Lease
	// Keep leaves the key locked for so long, if it is more than 0: the lease then ends by itself.
	Keep time.Duration
	// Left: a transaction of the holder's may have released the lease already.
	Left bool
	// Fenced: a transaction of the holder's may have the row locked. Open: it certainly has not
	// ended.
	Fenced, Open bool
	// Slot: the key is a slot of a limit, and has no queue.
	Slot bool
	// Next gets the slot, if it is not nil.
	Next *NextOwner
	// Doubtful: a copy of the granting request may still run.
	Doubtful bool
	// Again: an Unlock before has left the lease to MinHold.
	Again bool

	// Given is the lease that a hand-over has given to a waiter which had left, unless it is zero:
	// then the Queue releases it in place of Lease, which is gone.
	Given lease.Lease
	// Answer is the Queue's: what the store has answered to the release.
	Answer lease.Released
	// Went says that a transaction of the holder's has certainly released the lease, or that it
	// went from there to its next owner: it needs no release.
	Went bool
	// Gone says that the row did not name the lease any more. Forced says that an operator had taken
	// it away, where Left would explain it otherwise.
	Gone, Forced bool
	// Err wraps lease.ErrUnknown. Unless Keep was asked for, the orphan cleaner releases the lease.
	Err error
	// Passed is the Queue's: a try without an answer may have handed the lease over.
	Passed bool
	// Over is the Queue's: this process has had the key for long enough.
	Over bool
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

// Releases returns n items, in as few allocations as can be: most calls give one lease up.
func Releases(n int) []*Release {
	if n == 1 {
		one := new(struct {
			item Release
			list [1]*Release
		})
		one.list[0] = &one.item
		return one.list[:]
	}
	items, list := make([]Release, n), make([]*Release, n)
	for i := range items {
		list[i] = &items[i]
	}
	return list
}

// Freed is the lease that is to be released.
func (i *Release) Freed() lease.Lease {
	if i.Given.Owner.IsZero() {
		return i.Lease
	}
	return i.Given
}

// leasesOf returns the leases that are to be released, in the order of the items.
func leasesOf(items []*Release) []lease.Lease {
	leases := make([]lease.Lease, len(items))
	for n, i := range items {
		leases[n] = i.Freed()
	}
	return leases
}

// Releaser gives leases up. Its fields are set before its first call.
type Releaser struct {
	Store   *seam.Store
	Queue   Queue
	Orphans *cleanup.Cleaner

	deadline sharedDeadline
}

// Leases gives leases up whose holders expect no answer.
func (r *Releaser) Leases(ctx context.Context, leases []lease.Lease) {
	items := Releases(len(leases))
	for i, l := range leases {
		items[i].Lease = l
	}
	r.GiveUp(r.Within(ctx), items)
}

// Within returns a context for a call that must end soon but not with ctx, because a lease left
// behind would keep its key locked until it expires: it ends after seam.Timeout, or up to a quarter
// later.
func (r *Releaser) Within(ctx context.Context) context.Context { return r.deadline.within(ctx) }

// GiveUp gives every lease up, in as few calls to the store as there are ways to do it. It skips
// nil.
func (r *Releaser) GiveUp(ctx context.Context, items []*Release) {
	left := those(items, func(i *Release) bool { return i != nil })
	defer r.clean(left)
	if kept := those(left, func(i *Release) bool { return i.Keep > 0 }); len(kept) > 0 {
		r.keep(ctx, kept)
		left = those(left, func(i *Release) bool { return i.Keep <= 0 })
	}
	if open := those(left, func(i *Release) bool { return i.Open }); len(open) > 0 {
		r.explain(ctx, openTimeout, open)
		left = those(left, func(i *Release) bool { return i.Err == nil })
	}
	if len(left) > 0 {
		r.look(ctx, left)
		r.Queue.GiveUp(ctx, left)
		r.told(ctx, left)
	}
	r.explain(ctx, probeTimeout, those(left, func(i *Release) bool { return i.Fenced && i.Err != nil }))
}

// those returns the items that f selects: nil without any, and no new list for all.
func those(items []*Release, f func(*Release) bool) (out []*Release) {
	n := 0
	for _, i := range items {
		if f(i) {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case len(items):
		return items
	}
	for _, i := range items {
		if f(i) {
			out = append(out, i)
		}
	}
	return out
}

// clean leaves to the orphan cleaner what is not known to be released.
func (r *Releaser) clean(items []*Release) {
	var orphans []lease.Lease
	for _, i := range items {
		if i.Err != nil && !errors.Is(i.Err, lease.ErrUnknown) {
			i.Err = fmt.Errorf("%w: %w", lease.ErrUnknown, i.Err)
		}
		if i.Keep <= 0 && i.Doubtful {
			orphans = append(orphans, i.Lease)
		}
		if i.Keep <= 0 && i.Err != nil {
			orphans = append(orphans, i.Freed())
		}
	}
	if orphans != nil {
		r.Orphans.AddLeases(orphans...)
	}
}

// Forms are a lease as it is if its owner has the key alone, and if it shares it.
func Forms(l lease.Lease) []lease.Lease {
	alone, member := l, l
	alone.Shared, member.Shared = false, true
	return []lease.Lease{alone, member}
}

// keep makes each lease end when its Keep does. Nothing is cleaned up after an error, because that
// would free the key: the key is free when the lease ends that it has. A lease that is behind a
// fence stays as it is for the same reason. A renewal under way may come later and give the lease
// another TTL: MinHold promises a minimum.
func (r *Releaser) keep(ctx context.Context, items []*Release) {
	ctx, cancel := context.WithTimeout(ctx, seam.Timeout)
	defer cancel()
	for n, a := range r.renew(ctx, items, func(i *Release) time.Duration { return i.Keep }) {
		i := items[n]
		i.Gone = a.Err == nil && a.Outcome == lease.Lost
		if a.Err != nil {
			i.Err = fmt.Errorf("%w: unlock %q: %w", lease.ErrUnknown, i.Lease.Key, a.Err)
		}
		r.Queue.Kept(i.Lease.Key)
	}
}

// explain names the holder's own transaction as the cause for each item whose row is locked, in one
// call to the store. A renewal shows the lock, because it waits for no row. A lease that it does
// extend is about to be released.
func (r *Releaser) explain(ctx context.Context, within time.Duration, items []*Release) {
	if len(items) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	for n, a := range r.renew(ctx, items, func(*Release) time.Duration { return probeTTL }) {
		if a.Err == nil && a.Outcome == lease.Busy {
			items[n].Err = stuck(items[n])
		}
	}
}

func (r *Releaser) renew(
	ctx context.Context, items []*Release, ttl func(*Release) time.Duration,
) []lease.Renewed {
	reqs := make([]lease.RenewRequest, len(items))
	for n, i := range items {
		reqs[n] = lease.RenewRequest{Lease: i.Lease, TTL: ttl(i)}
	}
	return r.Store.Renew(ctx, reqs)
}

func stuck(i *Release) error {
	const text = "its row is locked by a transaction that has fenced this lock and has not ended: " +
		"end it before Unlock, or use UnlockTx"
	if i.Err == nil {
		return fmt.Errorf("%w: unlock %q: %s", lease.ErrUnknown, i.Lease.Key, text)
	}
	return fmt.Errorf("%w: unlock %q: it seems that %s (%w)", lease.ErrUnknown, i.Lease.Key, text, i.Err)
}

// Stop frees the timer. No call is under way any more.
func (r *Releaser) Stop() { r.deadline.stop() }
