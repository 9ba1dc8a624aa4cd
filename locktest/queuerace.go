package locktest

import (
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

var queueRaceProperties = []property{
	{"waiters who join and pass at once are granted once each, one at a time, with rising tokens", passRound},
	{"of many who claim a free key at once one is granted", claimRace},
}

// turns has the holders of a key, in order.
type turns struct {
	mu     sync.Mutex
	holder lease.Owner
	tokens []lease.Token
	grants map[lease.Owner]int
}

func (t *turns) enter(r *rig, l lease.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holder.IsZero() {
		r.Errorf("token %d was granted while %v has the key", l.Token, t.holder)
	}
	if n := len(t.tokens); n > 0 && t.tokens[n-1] >= l.Token {
		r.Errorf("token %d was granted after %d", l.Token, t.tokens[n-1])
	}
	t.holder, t.tokens = l.Owner, append(t.tokens, l.Token)
	t.grants[l.Owner]++
}

func (t *turns) exit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holder = lease.Owner{}
}

func passRound(r *rig) {
	r.queue()
	t := &turns{grants: make(map[lease.Owner]int)}
	n := r.h.scale(24)
	both := []lease.Store{r.here, r.there()}
	together(n, func(i int) {
		s, _ := adapter.As[lease.Queue](both[i%2])
		for range 2 {
			if !r.takeTurn(s, t) {
				return
			}
		}
	})
	for owner, grants := range t.grants {
		if grants != 1 {
			r.Errorf("%v was granted the key %d times", owner, grants)
		}
	}
	if len(t.tokens) != 2*n {
		r.Errorf("%d grants to %d waiters", len(t.tokens), 2*n)
	}
	if row, _ := r.row("k"); row.Held {
		r.Errorf("when all are done the row is %+v", row)
	}
}

// takeTurn joins, waits, and passes the key on. It runs beside the test's own goroutine.
func (r *rig) takeTurn(s lease.Queue, t *turns) bool {
	waiter := ticket("k")
	if _, err := s.Join(r.ctx, []lease.Ticket{waiter}); err != nil {
		r.Errorf("join among many: %v", err)
		return false
	}
	l, ok := r.await(s, waiter)
	if !ok {
		return false
	}
	t.enter(r, l)
	time.Sleep(time.Millisecond)
	t.exit()
	p, err := sole(s.Pass(r.ctx, []lease.Lease{l}))
	if err != nil || p.Err != nil || p.Gone {
		r.Errorf("pass among many: %+v, %v", p, err)
		return false
	}
	return true
}

// await polls until the key was passed to the waiter, or is free for it to claim.
func (r *rig) await(s lease.Queue, w lease.Ticket) (lease.Lease, bool) {
	l := lease.Lease{Key: w.Key, Owner: w.Owner}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		p, err := sole(s.QueuePositions(r.ctx, []lease.Lease{l}))
		if err == nil && !p.Granted && p.Remaining <= 0 && p.Ahead == 0 {
			var a lease.Acquired
			a, err = claimOne(r.ctx, s, w.AcquireRequest)
			p.Granted, p.Token = a.Granted, a.Token
		}
		if err != nil || p.Err != nil {
			r.Errorf("waiting among many: %+v, %v", p, err)
			return l, false
		}
		if p.Granted {
			l.Token = p.Token
			return l, true
		}
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			r.Errorf("not granted within %v: %+v", r.h.limit(), p)
			return l, false
		}
	}
}

func claimRace(r *rig) {
	q := r.queue()
	var last lease.Lease
	for range r.h.scale(16) {
		var mu sync.Mutex
		var granted []lease.Lease
		together(r.h.scale(32), func(int) {
			req := request("k", lease.NewOwner())
			a, err := claimOne(r.ctx, q, req)
			if err != nil {
				r.Errorf("claim, racing: %v", err)
			}
			if err == nil && a.Granted {
				mu.Lock()
				granted = append(granted, lease.Lease{Key: "k", Owner: req.Owner, Token: a.Token})
				mu.Unlock()
			}
		})
		if len(granted) != 1 {
			r.Fatalf("%d were granted the key at once: %+v", len(granted), granted)
		}
		r.wantAbove(granted[0], last)
		last = granted[0]
		r.wantFreed(last)
	}
}
