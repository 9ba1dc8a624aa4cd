package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Asker asks a store for keys. Its fields are set before its first call.
type Asker struct {
	Store *adapter.Store
	// Fair: keys are claimed in the order of the store's queue.
	Fair      bool
	Orphans   *cleanup.Cleaner
	Evictions *cleanup.Evictions
	// Cycles watches the calls that wait.
	Cycles *cycle.Watch
	// Hooks are called on the goroutines of calls, with their ctx.
	Hooks Hooks
	// GiveUp releases leases, and leaves to Orphans what it cannot release.
	GiveUp func(ctx context.Context, leases []lease.Lease)
	// Closed is closed when no call waits any longer.
	Closed <-chan struct{}

	leaders leaders

	found   atomic.Int64 // keys that were found held
	waiting atomic.Int64
}

// Hooks are told what calls find. Each may be nil.
type Hooks struct {
	// Contended is called with each key that was found held.
	Contended func(ctx context.Context, key string, held *lease.HeldError)
	// HolderChanged is called if a poll has read another holder of the key that the call waits for
	// than the poll before. Token is 0 if polls do not read it.
	HolderChanged func(ctx context.Context, key string, token lease.Token, holder *lease.HeldError)
	// Expired is called before an attempt if the last poll has read a holder whose lease had run out.
	Expired func(ctx context.Context, key string, token lease.Token, holder *lease.HeldError)
}

// Counts returns how many calls wait now, and how often a key was found held.
func (a *Asker) Counts() (waiting, found int64) { return a.waiting.Load(), a.found.Load() }

// Watches reports whether a call must be told what the polls read.
func (a *Asker) Watches(c *Call) bool {
	return c.Want.Show != nil || a.Hooks.HolderChanged != nil
}

// Ask sends a call's requests once and returns all grants, for a call for any of its keys the one
// grant, or none and an error. What was granted besides, or in part, is given up. What has an
// unknown outcome is the orphan cleaner's before Ask returns.
func (a *Asker) Ask(ctx context.Context, c *Call, reqs []lease.AcquireRequest) (Grants, error) {
	if IsClosed(a.Closed) {
		return Grants{}, Closed(c.Keys)
	}
	g := Grants{Sent: time.Now()}
	var answers []lease.Acquired
	switch {
	case c.Within != nil:
		answers = a.Store.AcquireWithin(ctx, *c.Within, reqs, c.N)
	case c.Any && a.Fair:
		answers = a.Store.ClaimAny(ctx, reqs, c.N)
	case c.Any:
		answers = a.Store.AcquireAny(ctx, reqs, c.N)
	case a.Fair:
		answers = a.Store.Claim(ctx, reqs)
	default:
		answers = a.Store.AcquireAll(ctx, reqs)
	}
	g.Each = slices.Grow(c.room[:0], len(reqs))
	n, err := a.note(&g, reqs, answers)
	if n == cmp.Or(c.N, len(reqs)) {
		if c.N > 0 {
			g = g.only(func(of *Grant) bool { return of.Answer.Granted })
		}
		return g, nil
	}
	if n > 0 {
		a.takeBack(ctx, g)
	}
	if err == nil {
		err = a.contended(ctx, c, g)
	}
	return Grants{}, err
}

// note adds the answers to g, counts what was granted, and joins what has failed. A request that
// may yet be granted is the orphan cleaner's.
func (a *Asker) note(
	g *Grants, reqs []lease.AcquireRequest, answers []lease.Acquired,
) (n int, err error) {
	var orphans []lease.Lease
	for i := range answers {
		g.Each = append(g.Each, Grant{reqs[i], answers[i]})
		switch answer := &answers[i]; {
		case answer.Err != nil:
			if errors.Is(answer.Err, lease.ErrUnknown) {
				orphans = append(orphans, g.Lease(i))
			}
			if err == nil || err.Error() != answer.Err.Error() { // the call's error is that of each key
				err = oneline.Join(err, answer.Err)
			}
		case answer.Granted:
			n++
		case answer.Unknown: // an earlier try of this request may yet be granted
			orphans = append(orphans, g.Lease(i))
		}
	}
	if orphans != nil {
		a.Orphans.AddLeases(orphans...)
	}
	return n, err
}

// takeBack gives up a part that was granted. Its keys are not what was in the way.
func (a *Asker) takeBack(ctx context.Context, g Grants) {
	a.Discard(ctx, g)
	for i := range g.Each {
		if answer := &g.Each[i].Answer; answer.Granted {
			answer.Possible = true
		}
	}
}

// Discard gives up what was granted to a call that does not keep it.
func (a *Asker) Discard(ctx context.Context, g Grants) {
	var leases, late []lease.Lease
	for i := range g.Each {
		if !g.Each[i].Answer.Granted {
			continue
		}
		leases = append(leases, g.Lease(i))
		if g.Each[i].Answer.Unknown { // a copy of the request may be granted after the release
			late = append(late, g.Lease(i))
		}
	}
	a.Orphans.AddLeases(late...)
	if len(leases) > 0 {
		a.GiveUp(ctx, leases)
	}
}

// contended returns the keys that are held, in key order.
func (a *Asker) contended(ctx context.Context, c *Call, g Grants) error {
	var all []error
	byKey := func(a, b Grant) int { return cmp.Compare(a.Req.Key, b.Req.Key) }
	for _, of := range slices.SortedFunc(slices.Values(g.Each), byKey) {
		if of.Answer.Possible {
			continue
		}
		key, by := of.Req.Key, of.Answer.Holder
		held := heldBy(key, by.Note, by.Remaining)
		held.Shared = by.Shared
		a.Evictions.Found(ctx, key, by.Remaining)
		held.Blocked = a.Evictions.Why(key)
		if !c.Want.Quiet {
			a.found.Add(1)
			if told := a.Hooks.Contended; told != nil {
				told(ctx, key, held)
			}
		}
		all = append(all, held)
	}
	if len(all) == 0 {
		return &lease.HeldError{Key: g.Each[0].Req.Key} // the store does not say which key is held
	}
	return oneline.Join(all...)
}

// IsClosed reports whether the client is closing, which closes closed: nothing more is asked for.
func IsClosed(closed <-chan struct{}) bool {
	select {
	case <-closed:
		return true
	default:
		return false
	}
}

// Closed is the error of a call on a closed client.
func Closed(keys []string) error {
	return fmt.Errorf("%w: lock %q", lease.ErrClosed, nameOf(keys))
}
