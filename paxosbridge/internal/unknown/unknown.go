// Package unknown remembers when a request last had an unknown outcome, so that a store can wait
// until no server still works on such a request.
package unknown

import (
	"context"
	"sync/atomic"
	"time"
)

// Last is the time of the last request with an unknown outcome. The zero Last has had none.
type Last struct{ at atomic.Int64 } // in Unix nanoseconds

// Note sets it to now.
func (l *Last) Note() { l.at.Store(time.Now().UnixNano()) }

// Wait returns when bound has passed since the last Note before the call, or with ctx.
func (l *Last) Wait(ctx context.Context, bound time.Duration) {
	at := l.at.Load()
	if at == 0 {
		return
	}
	select {
	case <-time.After(time.Until(time.Unix(0, at).Add(bound))):
	case <-ctx.Done():
	}
}
