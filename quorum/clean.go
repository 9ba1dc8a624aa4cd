package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// mostDirt bounds what is remembered for one member. What is beyond it ends with its TTL.
	mostDirt = 10_000
	// atOnce is how many leases one call releases.
	atOnce = 256
	// restOK is the pause after a try that was answered. Otherwise it grows from restMin to
	// restMax.
	restOK, restMin, restMax = 250 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second
)

// dirt is what a member may have granted in vain: a lease that could not be released, or an owner
// (token 0) whose request has an unknown outcome. It is released until that is certain or until it
// has expired by itself.
type dirt struct {
	mu      sync.Mutex
	left    map[lease.Lease]time.Time // since when
	working bool
}

// has reports whether a release of the lease may come yet.
func (d *dirt) has(l lease.Lease) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.left[l]
	return ok
}

// soil has the leases released at the member, and again until they certainly are. It begins in a
// moment: what is released at once meanwhile needs no other release.
func (s *Store) soil(m *member, leases ...lease.Lease) {
	d := &m.dirt
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range leases {
		if d.left == nil {
			d.left = make(map[lease.Lease]time.Time)
		}
		if _, known := d.left[l]; known || len(d.left) < mostDirt {
			d.left[l] = time.Now()
		}
	}
	if len(d.left) > 0 && !d.working {
		d.working = s.begin(func() { s.clean(m) })
	}
}

// cleaners release what failed attempts may have left at members, until the store is closed.
type cleaners struct {
	work    sync.WaitGroup
	closing sync.Mutex      // guards the closing, and the begin of a cleaner
	life    context.Context // ends with Close
	end     context.CancelFunc
}

// begin runs a cleaner unless the quorum is closed. An answer that comes while Close runs would
// otherwise start one of which Close does not know.
func (c *cleaners) begin(cleaner func()) bool {
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.life.Err() != nil {
		return false
	}
	c.work.Go(cleaner)
	return true
}

func (c *cleaners) close() {
	c.closing.Lock()
	defer c.closing.Unlock()
	c.end()
}

// wanted forgets owners that ask again, because a release would end their new lease.
func (d *dirt) wanted(key string, owner lease.Owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.left, lease.Lease{Key: key, Owner: owner})
}

// clean works until nothing is left or the quorum is closed, and then once more.
func (s *Store) clean(m *member) {
	for rest := restMin; ; {
		select {
		case <-time.After(rest):
		case <-s.life.Done():
		}
		done := s.life.Err() != nil
		ok := s.cleanOnce(m)
		if done || m.dirt.finished() {
			return
		}
		if rest = min(2*rest, restMax); ok {
			rest = restOK
		}
	}
}

// finished reports whether nothing is left; the next dirt then starts another cleaner.
func (d *dirt) finished() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.working = len(d.left) > 0
	return !d.working
}

// some returns up to n of what is left, and forgets what has expired by itself.
func (d *dirt) some(n int, expired time.Duration) (leases []lease.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l, since := range d.left {
		switch {
		case time.Since(since) > expired:
			delete(d.left, l)
		case len(leases) < n:
			leases = append(leases, l)
		}
	}
	return leases
}

// cleanOnce releases a part. It reports whether the member has answered.
func (s *Store) cleanOnce(m *member) bool {
	leases := m.dirt.some(atOnce, time.Duration(s.longest.Load())+window)
	return s.releaseAt(context.Background(), m, leases, s.cfg.Timeout)
}

// releaseAt releases at one member, for at most the bound, leases of which its cleaner knows. One
// with token 0 has an unknown outcome: a statement under way may grant it after the release. It
// reports whether all were answered.
func (s *Store) releaseAt(ctx context.Context, m *member, leases []lease.Lease, bound time.Duration) (ok bool) {
	run(ctx, s, round[lease.Released]{
		what: "release", bound: bound, items: s.only(m, len(leases)), keys: keysOf(leases, ofLease), failed: adapter.Unreleased,
		send: func(ctx context.Context, m *member) ([]lease.Released, error) { return m.release(ctx, leases) },
		take: func(_ *member, answers []lease.Released) bool {
			ok = true
			for i, a := range answers {
				if ok = ok && a.Err == nil; a.Err == nil {
					m.dirt.released(leases[i])
				}
			}
			return true
		},
	})
	return ok || len(leases) == 0
}

// release releases what is still to be released when the calls before it have ended: an owner that
// has asked again meanwhile keeps what it gets.
func (m *member) release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	answers := make([]lease.Released, len(leases))
	var at []int
	for i, l := range leases {
		if m.dirt.has(l) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return answers, nil
	}
	got, err := m.store.Release(ctx, adapter.Pick(leases, at))
	failed := func(err error) lease.Released { return adapter.Unreleased(m.named(err)) }
	for i, a := range adapter.Each("release", got, err, len(at), failed) {
		answers[at[i]] = a
	}
	return answers, nil
}

// released forgets a lease, and an owner only when no delayed statement can be granted any more.
func (d *dirt) released(l lease.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if since, ok := d.left[l]; ok && (l.Token != 0 || time.Since(since) > window) {
		delete(d.left, l)
	}
}

// unknown reports whether the request may have taken effect.
func unknown(err error) bool { return errors.Is(err, lease.ErrUnknown) }
