// Package orphan releases the leases that requests with an unknown outcome may have left.
package orphan

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// window is how long after the client stopped waiting for a request the server may still carry
	// it out. The lane's own statement and lock timeouts bound it there.
	window = 6 * time.Second
	// pause is between two rounds.
	pause = 250 * time.Millisecond
)

// Cleaner releases, by owner, what attempts with an unknown outcome may have left: at once, and
// again until a delayed statement can no longer grant it. An owner is used for one attempt only, so
// that the cleaner never touches another attempt's lease.
type Cleaner struct {
	store *seam.Store
	queue bool // tickets may be left behind too
	log   *slog.Logger

	mu      sync.Mutex
	orphans map[lease.Lease]time.Time // until when
	cleaned int64                     // that were released for the last time

	wake   chan struct{}
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Start returns a cleaner with its goroutine running. queue says that owners may have tickets.
func Start(store *seam.Store, queue bool, log *slog.Logger) *Cleaner {
	c := &Cleaner{
		store: store, queue: queue, log: log,
		orphans: make(map[lease.Lease]time.Time), wake: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Go(func() { c.loop(ctx) })
	return c
}

// Add has what owner may have of key released.
func (c *Cleaner) Add(key string, owner lease.Owner) {
	c.AddLease(lease.Lease{Key: key, Owner: owner})
}

// AddMember has what owner may have of key as a member of a team released.
func (c *Cleaner) AddMember(key string, owner lease.Owner) {
	c.AddLease(lease.Lease{Key: key, Owner: owner, Shared: true})
}

// AddLease has what l's owner may have of its key released, whatever its token.
func (c *Cleaner) AddLease(l lease.Lease) {
	l.Token = 0
	c.mu.Lock()
	c.orphans[l] = time.Now().Add(window)
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

func (c *Cleaner) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		for more := true; more; {
			if more, _ = c.round(ctx); more && !sleep(ctx) {
				return
			}
		}
	}
}

// sleep reports false when ctx ended first.
func sleep(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// round releases every orphan once. It reports whether any must be released again, and why one
// could not be.
func (c *Cleaner) round(ctx context.Context) (more bool, err error) {
	// The bound is short, so that a store that hangs and then answers again is asked again.
	ctx, cancel := context.WithTimeout(ctx, seam.Timeout)
	defer cancel()
	c.mu.Lock()
	leases := slices.Collect(maps.Keys(c.orphans))
	c.mu.Unlock()
	if len(leases) == 0 {
		return false, nil
	}
	now := time.Now()
	if c.queue {
		// Tickets go first, because an owner without a ticket is granted nothing more.
		if err := c.store.Leave(ctx, leases); err != nil {
			return true, err
		}
	}
	answers := c.store.Release(ctx, leases)
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := 0
	for i, l := range leases {
		switch {
		case answers[i].Err != nil:
			err = answers[i].Err
			failed++
		case now.After(c.orphans[l]):
			delete(c.orphans, l)
			c.cleaned++
		}
	}
	if failed == len(leases) {
		c.log.LogAttrs(ctx, slog.LevelWarn, "rowlock: release of leases with unknown outcome failed, trying again",
			slog.Int("keys", failed), slog.Any("error", err))
	}
	return len(c.orphans) > 0, err
}

// Stop waits for what earlier calls left running, releases every orphan once more, and returns when
// the goroutine is gone. A release before the granting statement has ended would find nothing, and
// the key would stay locked until the lease expires. The error says why an orphan could not be
// released before ctx ended.
func (c *Cleaner) Stop(ctx context.Context) (err error) {
	c.cancel()
	c.wg.Wait()
	open, _ := c.Counts()
	settled := open == 0 || c.store.Settle(ctx)
	for again := true; again; {
		last := ctx
		if ctx.Err() != nil {
			last = context.WithoutCancel(ctx) // once at least: the store may be answering again
		}
		var more bool
		more, err = c.round(last)
		// A store that cannot settle may grant until the orphan's window is over.
		again = (err != nil || more && !settled) && sleep(ctx)
	}
	if err != nil {
		err = fmt.Errorf("rowlock: close: a lease could not be released; it expires: %w", err)
	}
	return err
}
