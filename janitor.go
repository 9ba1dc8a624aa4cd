package rowlock

import (
	"context"
	"log/slog"
	"sync"
	"time"

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
	mu     sync.Mutex
	ghosts map[lease.Lease]time.Time // until when
	store  lease.Store
	log    *slog.Logger
	wake   chan struct{}
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (j *janitor) start(store lease.Store, log *slog.Logger) {
	j.store, j.log = store, log
	j.ghosts = make(map[lease.Lease]time.Time)
	j.wake = make(chan struct{}, 1)
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
		for j.round(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(janitorPause):
			}
		}
	}
}

// round releases every ghost once, and reports whether any is left to look after.
func (j *janitor) round(ctx context.Context) (more bool) {
	j.mu.Lock()
	leases := make([]lease.Lease, 0, len(j.ghosts))
	for l := range j.ghosts {
		leases = append(leases, l)
	}
	j.mu.Unlock()
	if len(leases) == 0 {
		return false
	}
	now := time.Now()
	answers, err := j.store.Release(ctx, leases)
	if err != nil || len(answers) != len(leases) {
		j.log.LogAttrs(ctx, slog.LevelWarn, "rowlock: cleaning up after unknown outcomes, will try again", slog.Int("keys", len(leases)), slog.Any("error", err))
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, l := range leases {
		if answers[i].Err == nil && now.After(j.ghosts[l]) {
			delete(j.ghosts, l)
		}
	}
	return len(j.ghosts) > 0
}

// stop makes one last round, if there is anything to clean up, and returns when the goroutine is gone.
func (j *janitor) stop() {
	j.cancel()
	j.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	j.round(ctx)
}
