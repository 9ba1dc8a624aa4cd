package once

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// AwaitWaiters returns when n calls wait for the one that has the key.
func AwaitWaiters(o *Once, key string, n int) {
	for {
		o.lines.mu.Lock()
		t := o.lines.at[place{"", key}]
		enough := t != nil && t.waiters >= n
		o.lines.mu.Unlock()
		if enough {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Limit has the server take values of this size only.
func (o *Once) Limit(n int64) {
	d := *o.d
	d.LargestValue = func(context.Context, lease.Runner) (int64, error) { return n, nil }
	o.d = &d
}

// Limited returns what the server says of itself, or 0.
func (o *Once) Limited(ctx context.Context, on lease.Runner) (int64, error) {
	if o.d.LargestValue == nil {
		return 0, nil
	}
	return o.d.LargestValue(ctx, on)
}
