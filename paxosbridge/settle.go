package paxosbridge

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// lateness is for how long a store that is no lease.Settler may carry out a request that its caller
// has given up. It is as long as a client goes on releasing what such a request may have left.
const lateness = 6 * time.Second

// unheard is when a request that may grant last had an unknown outcome.
type unheard struct{ last atomic.Int64 } // in Unix nanoseconds

func (u *unheard) note(answers []lease.Acquired, err error) {
	unsure := errors.Is(err, lease.ErrUnknown)
	for i := range answers {
		unsure = unsure || answers[i].Doubtful || errors.Is(answers[i].Err, lease.ErrUnknown)
	}
	if unsure {
		u.last.Store(time.Now().UnixNano())
	}
}

// wait returns when nothing of unknown outcome can be carried out any more, or with ctx.
func (u *unheard) wait(ctx context.Context) {
	last := u.last.Load()
	if last == 0 {
		return
	}
	select {
	case <-time.After(time.Until(time.Unix(0, last).Add(lateness))):
	case <-ctx.Done():
	}
}

// Settle returns when both stores have settled, or with ctx. Without it a client that closes would
// release the key before the acquire that still runs is granted it.
func (b *Bridge) Settle(ctx context.Context) {
	for _, store := range []lease.Store{b.table, b.cluster} {
		if s, ok := seam.As[lease.Settler](store); ok {
			s.Settle(ctx)
		} else {
			b.unheard.wait(ctx)
		}
	}
}
