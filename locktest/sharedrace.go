package locktest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var sharedRaceProperties = []property{
	{"members and other owners never hold a key together", sharersExclude},
	{"members that leave at once leave a key that can be taken", sharersLeaveTogether},
}

// sharersExclude has callers of two processes share a key and take it, as fast as they can. Each
// notes when it is inside; a writer must be alone. On a slow machine they go on until both have had
// the key, because otherwise nothing was seen.
func sharersExclude(r *rig) {
	r.sharer()
	stop := time.Now().Add(r.h.load())
	var inside, reads, writes atomic.Int64
	var all sync.WaitGroup
	const writer = 1000
	more := func() bool {
		late := time.Since(stop)
		return late < 0 || late < r.h.limit()/2 && (reads.Load() == 0 || writes.Load() == 0)
	}
	enter := func(by int64) {
		now := inside.Add(by)
		if by == writer && now != writer || by == 1 && now >= writer {
			r.Errorf("%d members and %d other owners hold the key together", now%writer, now/writer)
		}
		time.Sleep(time.Millisecond)
		inside.Add(-by)
	}
	for n := range 8 {
		s := r.here
		if n%2 == 1 {
			s = r.there()
		}
		all.Go(func() {
			for more() && !r.Failed() {
				if n < 2 {
					if r.asWriter(s, func() { enter(writer) }) {
						writes.Add(1)
					}
				} else if r.asMember(s, func() { enter(1) }) {
					reads.Add(1)
				}
			}
		})
	}
	all.Wait()
	if reads.Load() == 0 || writes.Load() == 0 {
		r.Errorf("%d members and %d other owners had the key", reads.Load(), writes.Load())
	}
}

// asWriter holds the key alone for f, if it can have it.
func (r *rig) asWriter(s lease.Store, f func()) bool {
	l := lease.Lease{Key: "k", Owner: lease.NewOwner()}
	a, err := acquireOne(r.ctx, s, request("k", l.Owner))
	if err == nil && a.Holder.Shared { // or members would keep the key among themselves
		_ = r.sharer().Intend(r.ctx, l.Owner, []string{"k"}, 100*time.Millisecond)
		time.Sleep(time.Millisecond)
	}
	if err != nil || !a.Granted {
		return false
	}
	f()
	l.Token = a.Token
	_, _ = releaseOne(r.ctx, s, l)
	time.Sleep(5 * time.Millisecond) // for members to come together
	return true
}

// asMember shares the key for f, if it can.
func (r *rig) asMember(s lease.Store, f func()) bool {
	sharer, ok := s.(lease.Sharer)
	if !ok {
		sharer = r.sharer()
	}
	l := lease.Lease{Key: "k", Owner: lease.NewOwner(), Shared: true}
	a, err := sole(sharer.Share(r.ctx, []lease.AcquireRequest{request("k", l.Owner)}))
	if err == nil && a.Possible {
		a, err = acquireOne(r.ctx, s, request("k", l.Owner))
		if err == nil && a.Granted {
			own := lease.Lease{Key: "k", Owner: l.Owner, Token: a.Token}
			made, failed := sole(sharer.Downgrade(r.ctx, []lease.RenewRequest{{Lease: own, TTL: ttl}}))
			if a.Granted = failed == nil && made.Outcome == lease.Extended; !a.Granted {
				_, _ = releaseOne(r.ctx, s, own)
			}
		}
	}
	l.Token = a.Token
	if err != nil || !a.Granted {
		l.Token = 0
		_, _ = releaseOne(r.ctx, s, l)
		return false
	}
	f()
	_, _ = releaseOne(r.ctx, s, l)
	return true
}

func sharersLeaveTogether(r *rig) {
	r.sharer()
	var last lease.Lease
	for range r.h.scale(16) {
		members := []lease.Lease{r.group("k"), r.share("k"), r.share("k"), r.share("k")}
		var all sync.WaitGroup
		for n, l := range members {
			s := r.here
			if n%2 == 1 {
				s = r.there()
			}
			all.Go(func() { _, _ = releaseOne(r.ctx, s, l) })
		}
		all.Wait()
		next := r.takeAfter(members[0])
		if next.Token <= last.Token {
			r.Errorf("token %d after %d", next.Token, last.Token)
		}
		last = next
		r.wantRelease(next, false)
	}
}
