// Package cleanup is what a client does beside its calls and after them: it releases the leases
// that requests with an unknown outcome may have left, ends the sessions that keep an expired key
// locked, finds out why a lock was lost, and counts the calls that Close must wait for.
package cleanup

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// window is how long an owner is released again and again.
	window = adapter.Outlives
	// pause is between two rounds.
	pause = 250 * time.Millisecond
)

// Cleaner releases, by owner, what attempts with an unknown outcome may have left: at once, and
// again until a delayed statement can no longer grant it. An owner is used for one attempt only, so
// that the cleaner never touches another attempt's lease. See Keep for what it leaves locked.
type Cleaner struct {
	store *adapter.Store
	queue bool // tickets may be left behind too
	log   *slog.Logger

	mu      sync.Mutex
	orphans map[lease.Lease]*orphaned // without their tokens
	cleaned int64                     // that were released for the last time
	failing failing

	wake   chan struct{}
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// orphaned is one orphan.
type orphaned struct {
	until time.Time   // when no delayed statement can grant it any more, or give it another TTL
	kept  time.Time   // it stays locked until then; zero: it does not
	token lease.Token // of a kept one
	late  func() bool // see Keep
	fresh bool        // no round has begun since it was added
}

// The first failed round is logged, and then one a while, which doubles from the first to the
// last: rounds come every pause, and one with each new orphan.
const firstQuiet, lastQuiet = time.Second, time.Minute

// failing are rounds that have failed since the last that has not.
type failing struct {
	rounds int
	quiet  time.Duration // after the last line
	next   time.Time     // when there may be another
}

// due counts a failed round, and reports whether it is logged.
func (f *failing) due(now time.Time) bool {
	f.rounds++
	if now.Before(f.next) {
		return false
	}
	f.quiet = min(max(firstQuiet, 2*f.quiet), lastQuiet)
	f.next = now.Add(f.quiet)
	return true
}

// Start returns a cleaner with its goroutine running. queue says that owners may have tickets.
func Start(store *adapter.Store, queue bool, log *slog.Logger) *Cleaner {
	c := &Cleaner{
		store: store, queue: queue, log: log,
		orphans: make(map[lease.Lease]*orphaned), wake: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Go(func() { c.loop(ctx) })
	return c
}

// AddLeases has what each lease's owner may have of its key released, whatever the token: of one
// that is shared also the key alone, which its request may have asked for to make a reader group.
// A call adds all that it leaves at once, so that one round releases them.
func (c *Cleaner) AddLeases(leases ...lease.Lease) {
	c.add(orphaned{}, leases)
}

// Keep has leases end in d, and no sooner: a key that is free before its MinHold is over may have
// its work done twice. It is asked for until the store has answered and nothing from before can be
// carried out. late reports whether a renewal is under way; nil: none is.
func (c *Cleaner) Keep(d time.Duration, late func() bool, leases ...lease.Lease) {
	c.add(orphaned{kept: time.Now().Add(d), late: late}, leases)
}

func (c *Cleaner) add(as orphaned, leases []lease.Lease) {
	if len(leases) == 0 {
		return
	}
	as.until, as.fresh = time.Now().Add(window), true
	c.mu.Lock()
	for _, l := range leases {
		as.token, l.Token = l.Token, 0
		one, alone := as, as
		c.orphans[l] = &one
		l.Shared = false
		c.orphans[l] = &alone
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Counts returns how many orphans there are, and how many were cleaned: released until no delayed
// statement could grant them any more.
func (c *Cleaner) Counts() (open, cleaned int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.orphans)), c.cleaned
}

// loop releases new orphans at once, and all of them every pause. A new one waits for no pause, and
// has the others released no sooner.
func (c *Cleaner) loop(ctx context.Context) {
	var again <-chan time.Time // nil, and never, without orphans
	for {
		more := true
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
			_, _ = c.round(ctx, true)
			if again != nil {
				continue
			}
		case <-again:
			more, _ = c.round(ctx, false)
		}
		if again = nil; more {
			again = time.After(pause)
		}
	}
}

// take returns all orphans, or those that are fresh. None of them is fresh any more.
func (c *Cleaner) take(fresh bool) (leases []lease.Lease, kept []lease.RenewRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l, o := range c.orphans {
		if fresh && !o.fresh {
			continue
		}
		if o.fresh = false; o.late != nil && o.late() {
			o.until = time.Now().Add(window)
		}
		if left := time.Until(o.kept); left > 0 {
			l.Token = o.token
			kept = append(kept, lease.RenewRequest{Lease: l, TTL: left})
		} else {
			leases = append(leases, l)
		}
	}
	return leases, kept
}

// ask asks the store once for all orphans, or those that are fresh.
func (c *Cleaner) ask(ctx context.Context, fresh bool) map[lease.Lease]error {
	answers := make(map[lease.Lease]error)
	leases, kept := c.take(fresh)
	if len(leases) > 0 {
		var queued error
		if c.queue { // tickets go first, because an owner without a ticket is granted nothing more
			queued = c.store.Leave(ctx, leases)
		}
		for i, a := range c.store.Release(ctx, leases) {
			answers[leases[i]] = cmp.Or(a.Err, queued)
		}
	}
	if len(kept) > 0 {
		for i, a := range c.store.Renew(ctx, kept) {
			if a.Outcome == lease.Busy { // still behind a fence
				a.Err = cmp.Or(a.Err, lease.ErrBusy)
			}
			l := kept[i].Lease
			l.Token = 0
			answers[l] = a.Err
		}
	}
	return answers
}

// round asks once for all orphans, or those that are fresh. It reports whether it must ask again
// for any, and why one could not be released, or kept.
func (c *Cleaner) round(ctx context.Context, fresh bool) (more bool, err error) {
	// The bound is short, so that a store that hangs and then answers again is asked again.
	ctx, cancel := context.WithTimeout(ctx, adapter.Timeout)
	defer cancel()
	now := time.Now()
	answers := c.ask(ctx, fresh)
	if len(answers) == 0 {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := 0
	for l, failure := range answers {
		switch {
		case failure != nil:
			err = failure
			failed++
		case now.After(c.orphans[l].until):
			delete(c.orphans, l)
			c.cleaned++
		}
	}
	switch {
	case failed < len(answers):
		c.failing = failing{}
	case c.failing.due(now):
		c.log.LogAttrs(ctx, slog.LevelWarn, "rowlock: release of leases with unknown outcome failed, trying again",
			slog.Int("keys", failed), slog.Int("times", c.failing.rounds), slog.Any("error", err))
	}
	return len(c.orphans) > 0, err
}

// Stop waits for what earlier calls left running, releases every orphan once more, and returns when
// the goroutine is gone. A release before the granting statement has ended would find nothing, and
// the key would stay locked until the lease expires. The error says why an orphan could not be
// released before ctx ended, or that it may be granted yet.
func (c *Cleaner) Stop(ctx context.Context) (err error) {
	c.cancel()
	c.wg.Wait()
	open, _ := c.Counts()
	settled := open == 0 || c.store.Settle(ctx) && ctx.Err() == nil
	for again := true; again; {
		last := ctx
		if ctx.Err() != nil {
			last = context.WithoutCancel(ctx) // once at least: the store may be answering again
		}
		var more bool
		more, err = c.round(last, false)
		if more && !settled { // an orphan may be granted until its window is over
			err = cmp.Or(err, lease.ErrUnknown)
		}
		if again = err != nil; again {
			select {
			case <-ctx.Done():
				again = false
			case <-time.After(pause):
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("rowlock: close: a lease could not be released, or kept for its MinHold; it expires: %w", err)
	}
	return err
}
