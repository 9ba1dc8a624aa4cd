package acquire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/evict"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/orphan"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// Asker asks a store for keys. Its fields are set before its first call.
type Asker struct {
	Store *seam.Store
	// Fair: keys are claimed in the order of the store's queue.
	Fair      bool
	Orphans   *orphan.Cleaner
	Evictions *evict.Watch
	// Contended is called with each key that was found held. May be nil.
	Contended func(key string, held *lease.HeldError)
	// GiveUp releases leases, and leaves to Orphans what it cannot release.
	GiveUp func(ctx context.Context, leases []lease.Lease)
	// Closed is closed when no call waits any longer.
	Closed <-chan struct{}
}

// Ask sends a call's requests once and returns all grants, or none and an error. What was granted
// of several keys is given up unless all were. What has an unknown outcome is the orphan cleaner's
// before Ask returns.
func (a *Asker) Ask(ctx context.Context, c *Call, reqs []lease.AcquireRequest) (Grants, error) {
	if a.IsClosed() {
		return Grants{}, Closed(c.Keys)
	}
	g := Grants{Reqs: reqs, Sent: time.Now()}
	g.Answers = a.send(ctx, reqs)
	granted, err := a.settle(g)
	if granted == len(reqs) {
		return g, nil
	}
	if granted > 0 {
		a.takeBack(ctx, g, granted)
	}
	if err == nil {
		err = a.contended(g, c.Want.Quiet)
	}
	return Grants{}, err
}

func (a *Asker) send(ctx context.Context, reqs []lease.AcquireRequest) []lease.Acquired {
	if a.Fair {
		return a.Store.Claim(ctx, reqs)
	}
	return a.Store.AcquireAll(ctx, reqs)
}

// settle counts what was granted and joins what has failed. A request that may yet be granted is
// the orphan cleaner's.
func (a *Asker) settle(g Grants) (granted int, err error) {
	for i := range g.Answers {
		switch answer := &g.Answers[i]; {
		case answer.Err != nil:
			if errors.Is(answer.Err, lease.ErrUnknown) {
				a.Orphans.Add(g.Reqs[i].Key, g.Reqs[i].Owner)
			}
			if err == nil || err.Error() != answer.Err.Error() { // the call's error is that of each key
				err = oneline.Join(err, answer.Err)
			}
		case answer.Granted:
			granted++
		case answer.Doubtful: // an earlier try of this request may yet be granted
			a.Orphans.Add(g.Reqs[i].Key, g.Reqs[i].Owner)
		}
	}
	return granted, err
}

// takeBack gives up a part that was granted. Its keys are not what was in the way.
func (a *Asker) takeBack(ctx context.Context, g Grants, granted int) {
	part := make([]lease.Lease, 0, granted)
	for i := range g.Answers {
		if g.Answers[i].Granted {
			part = append(part, g.Lease(i))
			g.Answers[i].Possible = true
			if g.Answers[i].Doubtful { // a copy of the request may be granted after the release
				a.Orphans.Add(g.Reqs[i].Key, g.Reqs[i].Owner)
			}
		}
	}
	a.GiveUp(ctx, part)
}

// contended returns the keys that are held, in the order of the requests.
func (a *Asker) contended(g Grants, quiet bool) error {
	var all []error
	for i := range g.Answers {
		if g.Answers[i].Possible {
			continue
		}
		key, by := g.Reqs[i].Key, g.Answers[i].Holder
		held := &lease.HeldError{Key: key, Note: by.Note, Remaining: by.Remaining}
		a.Evictions.Found(key, by.Remaining)
		if a.Contended != nil && !quiet {
			a.Contended(key, held)
		}
		all = append(all, held)
	}
	if len(all) == 0 {
		return &lease.HeldError{Key: g.Reqs[0].Key} // the store does not say which key is held
	}
	return oneline.Join(all...)
}

// IsClosed reports whether the client is closing: nothing more is asked for.
func (a *Asker) IsClosed() bool {
	select {
	case <-a.Closed:
		return true
	default:
		return false
	}
}

// Closed is the error of a call on a closed client.
func Closed(keys []string) error {
	return fmt.Errorf("%w: lock %q", lease.ErrClosed, Name(keys))
}
