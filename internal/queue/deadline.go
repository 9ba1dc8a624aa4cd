package queue

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
)

// sharedDeadline hands out contexts whose deadline many calls share, because a context and a timer
// for each call would be a third of what an Unlock allocates.
type sharedDeadline struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Time // when the next one begins
}

// Within returns a context for a call that must end soon but not with ctx, because a lease left
// behind would keep its key locked until it expires: it ends after adapter.Timeout, or up to a
// quarter later. Of ctx it has the values alone.
func (d *sharedDeadline) Within(ctx context.Context) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.ctx == nil || now.After(d.until) {
		// The last one ends by itself, because calls may be under way in it. None tells its deadline:
		// what ends by that would end as by the caller's own.
		d.ctx, d.cancel = context.WithCancel(context.Background())
		time.AfterFunc(adapter.Timeout*5/4, d.cancel)
		d.until = now.Add(adapter.Timeout / 4)
	}
	return valued{d.ctx, ctx}
}

// Stop frees the timer. No call is under way any more.
func (d *sharedDeadline) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}

// valued is a shared context with the values of a caller's.
type valued struct {
	context.Context
	values context.Context
}

// Err is no error of package context, for the same reason.
func (v valued) Err() error {
	if v.Context.Err() != nil {
		return adapter.ErrLate
	}
	return nil
}

// Value asks the shared context first. It has no values but those by which package context finds
// itself.
func (v valued) Value(key any) any {
	return cmp.Or(v.Context.Value(key), v.values.Value(key))
}
