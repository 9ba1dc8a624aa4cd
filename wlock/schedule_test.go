package wlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

// record is what holders were told of a key.
type record struct {
	mu     sync.Mutex
	owner  lease.Owner
	until  time.Time
	token  lease.Token
	grants int
	broken string
}

// told notes that an owner may rely on the key until then.
func (r *record) told(owner lease.Owner, token lease.Token, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case r.owner == owner:
	case !r.owner.IsZero() && now.Before(r.until):
		r.broken = fmt.Sprintf("%s was told of a grant while %s relied on its own for %s", owner, r.owner, r.until.Sub(now))
	case token <= r.token:
		r.broken = fmt.Sprintf("token %d after %d", token, r.token)
	default:
		r.grants++
	}
	r.owner, r.token, r.until = owner, token, until
}

// ends is called before a release is sent.
func (r *record) ends(owner lease.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner == owner {
		r.owner = lease.Owner{}
	}
}

// schedule has three processes lock two keys for some minutes while servers misbehave.
type schedule struct {
	c    *wlocktest.Cluster
	keys map[string]*record
	end  time.Time
}

func (s *schedule) work(ctx context.Context, store *wlock.Store, r *rand.Rand) {
	for time.Now().Before(s.end) {
		key := fmt.Sprint("key", r.IntN(2))
		owner, began := lease.NewOwner(), time.Now()
		bound, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(20))*time.Second)
		a, err := store.Acquire(bound, []lease.AcquireRequest{{Key: key, Owner: owner, TTL: ttl}})
		cancel()
		if err != nil || !a[0].Granted {
			if err != nil && r.IntN(2) == 0 {
				s.release(ctx, store, lease.Lease{Key: key, Owner: owner})
			}
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			continue
		}
		l := lease.Lease{Key: key, Owner: owner, Token: a[0].Token}
		s.keys[key].told(owner, l.Token, began.Add(ttl))
		s.hold(ctx, store, l, began.Add(ttl), r)
		s.keys[key].ends(owner)
		s.release(ctx, store, l)
	}
}

// hold renews for a while, and stops in time.
func (s *schedule) hold(ctx context.Context, store *wlock.Store, l lease.Lease, until time.Time, r *rand.Rand) {
	for range r.IntN(12) {
		time.Sleep(ttl / 4)
		began := time.Now()
		if !began.Before(until) {
			return
		}
		bound, cancel := context.WithDeadline(ctx, until)
		a, err := store.Renew(bound, []lease.RenewRequest{{Lease: l, TTL: ttl}})
		cancel()
		switch {
		case err == nil && a[0].Outcome == lease.Lost:
			return
		case err == nil && a[0].Outcome == lease.Extended && time.Now().Before(until):
			until = began.Add(ttl)
			s.keys[l.Key].told(l.Owner, l.Token, until)
		}
	}
}

func (s *schedule) release(ctx context.Context, store *wlock.Store, l lease.Lease) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, _ = store.Release(ctx, []lease.Lease{l})
}

// misbehave is what happens to servers, one thing after the other.
func (s *schedule) misbehave(r *rand.Rand) {
	var mu sync.Mutex
	for i := range 3 {
		s.c.Node(i + 1).Fault(func(*frame.Request) wlocktest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if r.IntN(12) > 0 {
				return wlocktest.None
			}
			return wlocktest.Fault(r.IntN(int(wlocktest.HoldAnswer) + 1))
		})
	}
	for time.Now().Before(s.end) {
		mu.Lock()
		n, what, d := s.c.Node(1+r.IntN(3)), r.IntN(8), time.Duration(r.IntN(8000))*time.Millisecond
		mu.Unlock()
		switch what {
		case 0, 1, 2:
			n.Pause()
			time.Sleep(10 * time.Second)
			s.c.Elect()
			time.Sleep(ttl + d)
			n.Resume()
			time.Sleep(d)
			n.CatchUp()
		case 3:
			n.Kill()
			time.Sleep(10 * time.Second)
			s.c.Elect()
			s.c.Push()
			n.Start()
		case 4:
			n.Cut()
		case 5:
			s.c.Depose(int32(0))
			time.Sleep(time.Second)
			s.c.Elect()
		case 6:
			s.c.Hide(int32(1))
			s.c.Push()
			time.Sleep(d)
			s.c.Hide()
		case 7:
			n.MangleOnce(func(b []byte) []byte { return append(b[:len(b)-1], 0) })
		}
		time.Sleep(d)
		n.Let()
	}
}

// run returns what was broken, and how many grants there were.
func run(t *testing.T, seed uint64, asJava bool) (broken string, grants int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &schedule{
			c:    wlocktest.New(wlocktest.Options{Nodes: 3, Groups: 2}, cluster),
			keys: map[string]*record{"key0": {}, "key1": {}}, end: time.Now().Add(10 * time.Minute),
		}
		defer s.c.Close()
		cfg := config(s.c)
		cfg.Groups = 2
		var all sync.WaitGroup
		all.Go(func() { s.misbehave(rand.New(rand.NewPCG(seed, 0))) })
		for i := range uint64(3) {
			store := open(t, cfg)
			defer store.Close()
			if asJava {
				store.RenewsAsJava()
			}
			for j := range uint64(2) {
				all.Go(func() { s.work(context.Background(), store, rand.New(rand.NewPCG(seed, 1+2*i+j))) })
			}
		}
		all.Wait()
		for key, r := range s.keys {
			grants += r.grants
			if r.broken != "" {
				broken = key + ": " + r.broken
			}
		}
	})
	return broken, grants
}

func TestRandomSchedules(t *testing.T) {
	total := 0
	for seed := range uint64(5) {
		broken, grants := run(t, seed, false)
		if broken != "" {
			t.Errorf("seed %d: %s", seed, broken)
		}
		total += grants
	}
	if t.Logf("%d grants", total); total < 100 {
		t.Errorf("%d grants: too few to show anything", total)
	}
}

// The check would find what RENEW breaks.
func TestRandomSchedulesFindThatRenewIsUnsafe(t *testing.T) {
	for seed := range uint64(100) {
		if broken, _ := run(t, seed, true); broken != "" {
			t.Logf("seed %d: %s", seed, broken)
			return
		}
	}
	t.Error("no schedule has broken a lock that was extended by RENEW")
}
