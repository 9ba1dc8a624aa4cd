package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rowlockdb/rowlock/lease"
)

var sweepLoadProperties = []property{
	{"tokens go on growing while a sweeper runs", tokensUnderSweep},
}

// tokensUnderSweep is a reaper that deletes a row and with it the counter. Workers lock and unlock
// a few keys as fast as they can while every dead row is swept: for Harness.Load, and on a slow
// machine until there was something to sweep.
func tokensUnderSweep(r *rig) {
	s := r.sweeper()
	const workers, keys = 8, 12 // more keys than workers, so that there is always something dead
	ctx, cancel := context.WithTimeout(r.ctx, r.h.load())
	defer cancel()
	var log grants
	var removed atomic.Int64
	idle := func() bool { return removed.Load() == 0 && r.ctx.Err() == nil }
	together(workers+1, func(i int) {
		for (ctx.Err() == nil || idle()) && !r.Failed() {
			if i < workers {
				r.cycle(fmt.Sprint("k", rand.N(keys)), &log)
				continue
			}
			n, err := s.Sweep(r.ctx, lease.SweepOptions{Batch: 4})
			if err != nil {
				r.Errorf("sweep under load: %v", err)
			}
			removed.Add(n)
		}
	})
	if r.Failed() {
		return
	}
	r.Logf("%d grants, %d rows swept", log.n, removed.Load())
	if removed.Load() == 0 {
		r.Errorf("%d grants and no row swept prove nothing", log.n)
	}
}

// cycle takes key if it is free and releases it again.
func (r *rig) cycle(key string, log *grants) {
	q := request(key, lease.NewOwner())
	a, err := acquireOne(r.ctx, r.here, q)
	// A quorum of which two members have fallen behind by all calls that they may is busy in order.
	if err != nil && !(r.h.Slow && errors.Is(err, lease.ErrBusy)) {
		r.Errorf("acquire %q under load: %v", key, err)
	}
	if err != nil || !a.Granted {
		return
	}
	if wrong := log.enter(key, a.Token); wrong != "" {
		r.Errorf("%q: %s", key, wrong)
	}
	runtime.Gosched()
	log.leave(key)
	released, err := releaseOne(r.ctx, r.here, lease.Lease{Key: key, Owner: q.Owner, Token: a.Token})
	if err != nil || released.Gone {
		r.Errorf("release %q under load: %+v, %v", key, released, err)
	}
}

// grants is what the lock should protect. The holders of a key enter one after the other, so that
// their order is that of the grants.
type grants struct {
	mu     sync.Mutex
	last   map[string]lease.Token
	inside map[string]bool
	n      int
}

func (g *grants) enter(key string, token lease.Token) (wrong string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last, g.inside = make(map[string]lease.Token), make(map[string]bool)
	}
	if g.inside[key] {
		wrong = "two holders at a time"
	}
	if last := g.last[key]; token <= last {
		wrong = fmt.Sprintf("token %d was granted after token %d", token, last)
	}
	g.last[key], g.inside[key] = token, true
	g.n++
	return wrong
}

func (g *grants) leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside[key] = false
}
