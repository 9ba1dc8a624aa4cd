package cleanup

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// mostLost bounds the losses that wait for their reason: after an outage of the database all locks
// are lost, and for the same one.
const mostLost = 64

// Reasons finds out why a lock was lost, for the log of the client that held it: it reads the
// records of forced releases. Its exported fields are set before the first Ask.
type Reasons struct {
	Store *adapter.Store
	Calls *Calls
	Log   *slog.Logger
	// Forced is told of each record of a lost lock. It may be nil.
	Forced func(ctx context.Context, f lease.Forced)

	mu   sync.Mutex
	lost []lease.Lease // the first is being asked about
}

// Ask logs who took a lost lease away, if an operator did. It returns at once.
func (r *Reasons) Ask(l lease.Lease) {
	forces, err := r.Store.Forces()
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lost) == 0 {
		if !r.Calls.Enter() {
			return
		}
		go r.run(forces)
	}
	if len(r.lost) < mostLost {
		r.lost = append(r.lost, l)
	}
}

func (r *Reasons) run(forces lease.ForceReleaser) {
	defer r.Calls.Leave()
	for more := true; more; {
		r.mu.Lock()
		l := r.lost[0]
		r.mu.Unlock()
		r.explain(forces, l)
		r.mu.Lock()
		r.lost = r.lost[1:]
		more = len(r.lost) > 0
		r.mu.Unlock()
	}
}

func (r *Reasons) explain(forces lease.ForceReleaser, l lease.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), adapter.Timeout)
	defer cancel()
	records, err := forces.ForceReleases(ctx, lease.ForcedFilter{Key: l.Key, Limit: 10})
	if err != nil {
		return // the lock is lost all the same
	}
	for _, f := range records {
		if f.Lease.Token == l.Token {
			r.Log.LogAttrs(ctx, slog.LevelWarn, "rowlock: the lost lock was taken away by an operator",
				slog.String("key", l.Key), slog.Any("token", l.Token), slog.String("by", f.By),
				slog.String("reason", f.Reason),
				slog.Duration("ago", time.Since(f.At).Round(time.Millisecond)))
			if r.Forced != nil {
				r.Forced(ctx, f)
			}
		}
	}
}
