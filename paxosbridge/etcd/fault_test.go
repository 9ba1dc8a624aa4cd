//go:build linux

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// load has workers of two processes acquire and release three keys, and rely on holding them in
// between. No two workers may hold a key at once, and tokens must grow from one holder to the next.
type load struct {
	testing.TB
	stores  []*etcd.Cluster
	granted atomic.Int64
	doubts  atomic.Int64

	mu      sync.Mutex
	holders map[string]lease.Owner
	last    map[string]lease.Token
	wg      sync.WaitGroup
	end     context.CancelFunc
}

func startLoad(tb testing.TB, stores ...*etcd.Cluster) *load {
	ctx, cancel := context.WithCancel(tb.Context())
	w := &load{
		TB: tb, stores: stores, holders: make(map[string]lease.Owner), last: make(map[string]lease.Token),
		end: cancel,
	}
	for i := range 12 {
		w.wg.Go(func() {
			for ctx.Err() == nil {
				w.round(ctx, stores[i%len(stores)], fmt.Sprint("k", i%3))
			}
		})
	}
	tb.Cleanup(w.stop)
	return w
}

func (w *load) stop() { w.end(); w.wg.Wait() }

// round does what a client does: it releases an attempt with an unknown outcome by its owner, until
// that has an answer.
func (w *load) round(ctx context.Context, s *etcd.Cluster, key string) {
	q := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: 10 * time.Second}
	a, err := s.Acquire(ctx, []lease.AcquireRequest{q})
	l := lease.Lease{Key: key, Owner: q.Owner}
	switch {
	case errors.Is(err, lease.ErrUnknown):
		w.doubts.Add(1)
		w.free(s, l)
	case err != nil:
		if !errors.Is(err, lease.ErrBusy) && ctx.Err() == nil {
			w.Errorf("acquire: %v", err)
		}
	case a[0].Granted:
		l.Token = a[0].Token
		w.enter(l)
		time.Sleep(time.Millisecond)
		w.leave(l)
		w.free(s, l)
		if a[0].Unknown {
			w.doubts.Add(1)
			w.free(s, lease.Lease{Key: key, Owner: q.Owner})
		}
	}
}

func (w *load) enter(l lease.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other, held := w.holders[l.Key]; held {
		w.Errorf("%q was granted to %s while %s has it", l.Key, l.Owner, other)
	}
	if l.Token <= w.last[l.Key] {
		w.Errorf("%q was granted with token %d after %d", l.Key, l.Token, w.last[l.Key])
	}
	w.holders[l.Key], w.last[l.Key] = l.Owner, l.Token
	w.granted.Add(1)
}

func (w *load) leave(l lease.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.holders, l.Key)
}

// free releases until that has an answer. The next release finds a copy of the acquire that was
// late.
func (w *load) free(s *etcd.Cluster, l lease.Lease) {
	for began := time.Now(); time.Since(began) < patience; {
		if _, err := s.Release(context.Background(), []lease.Lease{l}); err == nil {
			return
		}
	}
	w.Errorf("%q could not be released", l.Key)
}

// goesOn waits until keys are granted again.
func (w *load) goesOn(what string) {
	w.Helper()
	began, was := time.Now(), w.granted.Load()
	eventually(w.TB, "service "+what, func() bool { return w.granted.Load() > was+30 })
	w.Logf(
		"%s: %d granted until then, %d doubts; goes on after %s", what, was, w.doubts.Load(),
		time.Since(began).Round(time.Millisecond),
	)
}

func joinOwn(t *testing.T, m *members) (*etcd.Cluster, *etcd.Cluster) {
	here, there := dialTo(t, m.client), dialTo(t, m.client)
	return join(
		t, here, "rowlock/", etcd.Timeout(4*time.Second),
	), join(t, there, "rowlock/", etcd.Timeout(4*time.Second))
}

func TestOneHolderWhileMembersDieAndHang(t *testing.T) {
	t.Parallel()
	m := startMembers(t)
	here, there := joinOwn(t, m)
	w := startLoad(t, here, there)
	admin := dialTo(t, m.client)
	w.goesOn("at first")

	leader := m.leader(admin)
	m.kill(leader)
	w.goesOn("after the leader was killed")
	m.start(leader)
	w.goesOn("after it was started again")
	m.answers()

	leader = m.leader(admin)
	m.signal(syscall.SIGSTOP, leader)
	w.goesOn("while a leader is stopped")
	m.signal(syscall.SIGCONT, leader)
	w.goesOn("after it continued")
	m.answers()

	follower := (m.leader(admin) + 1) % 3
	m.signal(syscall.SIGSTOP, follower)
	w.goesOn("while a follower is stopped")
	m.signal(syscall.SIGCONT, follower)
	w.goesOn("after it continued")
}

// The test asks a member that is cut off from the others.
func TestAMemberThatIsCutOffGrantsNothing(t *testing.T) {
	t.Parallel()
	m := startMembers(t)
	client := dialTo(t, m.client[:1])
	r := &rig{
		t, client, "rowlock/", join(t, client, "rowlock/", etcd.Timeout(1500*time.Millisecond)),
	}
	held := r.take("held", 0)
	r.release(r.take("free", 0))

	m.signal(syscall.SIGSTOP, 1, 2)
	began := time.Now()
	l, a, err := r.try("free", 0)
	took := time.Since(began)
	if a.Granted || !errors.Is(err, lease.ErrUnknown) && !errors.Is(err, lease.ErrBusy) ||
		took > 10*time.Second {
		t.Errorf("acquire: %+v, %v, after %s", a, err, took)
	}
	if _, err := r.Renew(t.Context(), []lease.RenewRequest{{Lease: held, TTL: ttl}}); err == nil {
		t.Error("renewed by one member of three")
	}
	began = time.Now()
	many := make([]lease.RenewRequest, 1000)
	for i := range many {
		many[i] = lease.RenewRequest{
			Lease: lease.Lease{Key: fmt.Sprint(i), Owner: held.Owner, Token: 1}, TTL: ttl,
		}
	}
	got, err := r.Renew(t.Context(), many)
	for i, a := range got {
		if a.Err == nil || err != nil {
			t.Fatalf("renewal %d of many: %+v, %v", i, a, err)
		}
	}
	if took := time.Since(began); took > 10*time.Second { // 16 timeouts take 24 s
		t.Errorf("many renewals took %s", took)
	}
	if err := r.Probe(t.Context()); err == nil {
		t.Error("the probe says that the cluster answers")
	}
	if _, err := r.Inspect(t.Context(), lease.Filter{}); err == nil ||
		errors.Is(err, lease.ErrUnknown) {
		t.Errorf("inspect: %v", err)
	}

	m.signal(syscall.SIGCONT, 1, 2)
	eventually(t, "the cluster", func() bool { return r.Probe(t.Context()) == nil })
	eventually(t, "a renewal", func() bool {
		got, err := r.Renew(t.Context(), []lease.RenewRequest{{Lease: held, TTL: ttl}})
		return err == nil && got[0].Outcome == lease.Extended
	})
	l.Token = 0
	eventually(t, "the attempt of unknown outcome to be cleaned up", func() bool {
		_, err := r.Release(t.Context(), []lease.Lease{l})
		return err == nil
	})
	r.take("free", 0)
}

// A request that was never sent changed nothing.
func TestWithoutAConnectionNothingIsUnknown(t *testing.T) {
	t.Parallel()
	m := startMembers(t)
	client := dialTo(t, m.client)
	r := &rig{t, client, "rowlock/", join(t, client, "rowlock/", etcd.Timeout(2*time.Second))}
	r.release(r.take("k", 0))
	for i := range m.running {
		m.kill(i)
	}
	eventually(t, "the client to notice", func() bool {
		_, a, err := r.try("k", 0)
		if err == nil {
			t.Fatalf("granted without a connection: %+v", a)
		}
		return errors.Is(err, lease.ErrBusy) && !errors.Is(err, lease.ErrUnknown)
	})
}

// The test kills and stops each member in turn. One of them is the listener's. Its client has no
// keepalive, so that only the listener can notice.
func TestAListenerOutlivesItsMember(t *testing.T) {
	t.Parallel()
	m := startMembers(t)
	here, there := dialWith(t, clientv3.Config{Endpoints: m.client}), dialTo(t, m.client)
	listener := join(t, here, "rowlock/", etcd.Silence(time.Second))
	r := &rig{t, there, "rowlock/", join(t, there, "rowlock/", etcd.Timeout(4*time.Second))}
	heard := make(chan string, 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- listener.Listen(ctx, func(key string) { heard <- key }) }()
	hears := func(what, key string) {
		t.Helper()
		l := r.takeSoon(key)
		for len(heard) > 0 {
			<-heard
		}
		r.releaseSoon(l)
		began := time.Now()
		for {
			select {
			case got := <-heard:
				if got == key || got == "" {
					t.Logf(
						"%s: %q heard after %s", what, got,
						time.Since(began).Round(time.Millisecond),
					)
					return
				}
			case <-time.After(patience):
				t.Fatalf("%s: not heard", what)
			}
		}
	}
	if first := <-heard; first != "" {
		t.Errorf("the first that is heard is %q", first)
	}
	hears("at first", "k")
	for i := range m.running {
		m.kill(i)
		hears(fmt.Sprintf("member %d killed", i), "k")
		m.start(i)
		m.answers()
	}
	for i := range m.running {
		m.signal(syscall.SIGSTOP, i)
		hears(fmt.Sprintf("member %d stopped", i), "k")
		m.signal(syscall.SIGCONT, i)
		m.answers()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("listen: %v", err)
	}
}

// takeSoon acquires a free key, though etcd may be electing. A late copy of an acquire may hold the
// key once more, but no longer than the lease that it names lasts.
func (r *rig) takeSoon(key string) (l lease.Lease) {
	r.Helper()
	q := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: 5 * time.Second}
	eventually(r.TB, "a free key", func() bool {
		a, err := r.Acquire(r.Context(), []lease.AcquireRequest{q})
		l = lease.Lease{Key: key, Owner: q.Owner, Token: a[0].Token}
		return err == nil && a[0].Granted
	})
	return l
}

func (r *rig) releaseSoon(l lease.Lease) {
	r.Helper()
	eventually(r.TB, "a release", func() bool {
		_, err := r.Release(r.Context(), []lease.Lease{l})
		return err == nil
	})
}
