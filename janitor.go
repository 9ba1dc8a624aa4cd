package rowlock

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
	// ghostWindow is how long after we gave up on a request it may still be carried out by the server: it is bounded there by
	// the lane's own statement and lock timeouts.
	ghostWindow = 6 * time.Second
	// janitorPause is between two rounds.
	janitorPause = 250 * time.Millisecond
)

// janitor releases, by owner, what attempts with an unknown outcome may have left: at once and again until the window in which
// a delayed statement could still grant has passed. An owner is used for one attempt only, so that this can never touch
// anybody else's lease.
type janitor struct {
	mu      sync.Mutex
	ghosts  map[lease.Lease]time.Time // until when
	calls   int                       // that may leave something behind
	stopped bool
	quiet   chan struct{} // closed when it is stopped and no call is left

	store  lease.Store
	queue  lease.Queue // nil unless tickets may be left behind too
	log    *slog.Logger
	wake   chan struct{}
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (j *janitor) start(store lease.Store, log *slog.Logger) {
	j.store, j.log = store, log
	j.ghosts = make(map[lease.Lease]time.Time)
	j.wake = make(chan struct{}, 1)
	j.quiet = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	j.cancel = cancel
	j.wg.Go(func() { j.loop(ctx) })
}

func (j *janitor) cleanUp(key string, owner lease.Owner) {
	j.mu.Lock()
	j.ghosts[lease.Lease{Key: key, Owner: owner}] = time.Now().Add(ghostWindow)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *janitor) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.wake:
		}
		for more := true; more; {
			if more, _ = j.round(ctx); more && !rest(ctx, janitorPause) {
				return
			}
		}
	}
}

// rest sleeps, and reports false when ctx ended first.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// round releases every ghost once, and reports whether any is left to look after, and why one could not be released. A store
// that hangs does not keep it: the next round may find it answering again.
func (j *janitor) round(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, unlockTimeout)
	defer cancel()
	j.mu.Lock()
	leases := slices.Collect(maps.Keys(j.ghosts))
	j.mu.Unlock()
	if len(leases) == 0 {
		return false, nil
	}
	now := time.Now()
	if j.queue != nil {
		if err := j.queue.Leave(ctx, leases); err != nil { // first: what has no ticket is granted nothing more
			return true, err
		}
	}
	answers, err := j.store.Release(ctx, leases)
	if err == nil && len(answers) != len(leases) {
		err = fmt.Errorf("%w: %d answers to %d releases", lease.ErrCorrupt, len(answers), len(leases))
	}
	if err != nil {
		j.log.LogAttrs(ctx, slog.LevelWarn, "rowlock: giving back what an unknown outcome may have left, trying again", slog.Int("keys", len(leases)), slog.Any("error", err))
		return true, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, l := range leases {
		switch {
		case answers[i].Err != nil:
			err = answers[i].Err
		case now.After(j.ghosts[l]):
			delete(j.ghosts, l)
		}
	}
	return len(j.ghosts) > 0, err
}

// enter counts a call that may leave something behind, so that stop waits for it. It reports false once stop was called.
func (j *janitor) enter() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped {
		return false
	}
	j.calls++
	return true
}

// leave is called when a call that has entered returns, after its cleanUp.
func (j *janitor) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls--
	j.hush()
}

func (j *janitor) hush() {
	if j.stopped && j.calls == 0 {
		close(j.quiet)
	}
}

// stop waits for calls under way and for what they left running, releases every ghost once more, and returns when the goroutine
// is gone. Cleaning up before the statement that grants has ended would find nothing, and the lease would be nobody's until it
// expires. The error says why something could not be released before ctx ended.
func (j *janitor) stop(ctx context.Context) (err error) {
	j.mu.Lock()
	j.stopped = true
	j.hush()
	j.mu.Unlock()
	select {
	case <-j.quiet:
	case <-ctx.Done():
	}
	j.cancel()
	j.wg.Wait()
	settler, settles := seam.As[lease.Settler](j.store)
	if settles {
		settler.Settle(ctx)
	}
	for again := true; again; {
		last := ctx
		if ctx.Err() != nil {
			last = context.WithoutCancel(ctx) // once at least: the store may be answering again
		}
		var more bool
		more, err = j.round(last)
		// A store that cannot say when an acquire has ended may grant it until the orphan's window is over.
		again = (err != nil || more && !settles) && rest(ctx, janitorPause)
	}
	if err != nil {
		err = fmt.Errorf("rowlock: close: not everything could be given back; it expires: %w", err)
	}
	return err
}
