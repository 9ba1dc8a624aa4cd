package wlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

// anyCluster is the one of ROWLOCK_TEST_WLOCK, a registry's address, or a double. Keys are new.
func anyCluster(tb testing.TB) (cfg wlock.Config, prefix string, double *wlocktest.Cluster) {
	tb.Helper()
	prefix = lease.NewOwner().String() + "/"
	if at := os.Getenv("ROWLOCK_TEST_WLOCK"); at != "" {
		return wlock.Config{Registry: []string{at}, Cluster: cluster}, prefix, nil
	}
	double = newDouble(tb)
	return patient(config(double)), prefix, double
}

type interop struct {
	*testing.T
	c, d   *wlock.Client
	key    string
	double *wlocktest.Cluster
}

func newInterop(t *testing.T) *interop {
	t.Helper()
	cfg, key, double := anyCluster(t)
	return &interop{t, client(t, cfg), client(t, cfg), key, double}
}

func (i *interop) ask(kind wlock.Kind) wlock.Ask {
	return wlock.Ask{Lock: wlock.Lock{Key: i.key, Kind: kind, Owner: lease.NewOwner()}, TTL: 10 * time.Second}
}

func (i *interop) take(c *wlock.Client, a wlock.Ask) wlock.Lock {
	i.Helper()
	g, err := c.TryLock(i.Context(), a)
	if err != nil {
		i.Fatal(err)
	}
	return g.Lock
}

func (i *interop) refused(c *wlock.Client, a wlock.Ask) {
	i.Helper()
	if g, err := c.TryLock(i.Context(), a); !errors.Is(err, wlock.ErrRefused) {
		i.Errorf("%+v, %v, want a refusal", g, err)
	}
}

func (i *interop) free(l wlock.Lock, freed, own bool) {
	i.Helper()
	if f, o, err := i.c.ReleaseLock(i.Context(), l); f != freed || o != own || err != nil {
		i.Errorf("release: %t, %t, %v, want %t, %t", f, o, err, freed, own)
	}
}

// wait waits in the queue, and tells when it is granted.
func (i *interop) wait(ctx context.Context, a wlock.Ask) <-chan wlock.Lock {
	got := make(chan wlock.Lock, 1)
	go func() {
		if g, err := i.d.WaitLock(ctx, a); err == nil {
			got <- g.Lock
		}
		close(got)
	}()
	return got
}

// settled waits until n are in the server's queue. A real cluster does not tell.
func (i *interop) settled(n int) {
	i.Helper()
	for end := time.Now().Add(30 * time.Second); i.double != nil; time.Sleep(time.Millisecond) {
		switch got := i.double.Waiting(wire(i.key)); {
		case got == n:
			return
		case time.Now().After(end):
			i.Fatalf("%d wait, want %d", got, n)
		}
	}
	time.Sleep(50 * time.Millisecond)
}

// 7, 8, 9, 10 of the protocol's list.
func TestAMutexIsAnsweredAsTheProtocolSays(t *testing.T) {
	i := newInterop(t)
	own := i.ask(wlock.Mutex)
	first := i.take(i.c, own)
	if l, held, err := i.d.See(t.Context(), wlock.Lock{Key: i.key}); err != nil || !held || l != first {
		t.Errorf("GET shows %+v (%t, %v), want %+v", l, held, err, first)
	}
	i.refused(i.d, i.ask(wlock.Mutex))
	second := i.take(i.c, own)
	if second.Token <= first.Token {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	i.free(first, false, true)
	stranger := second
	stranger.Owner = lease.NewOwner()
	i.free(stranger, false, false)
	i.free(second, true, false)
	i.free(second, false, false)
	if _, held, err := i.d.See(t.Context(), wlock.Lock{Key: i.key}); held || err != nil {
		t.Errorf("a released lock is held: %v", err)
	}
}

// 11.
func TestRenewIsAnsweredAsTheProtocolSays(t *testing.T) {
	i := newInterop(t)
	renews := func(l wlock.Lock, want bool) {
		t.Helper()
		if _, got, err := i.c.RenewLock(t.Context(), l, 10*time.Second); got != want || err != nil {
			t.Errorf("%t, %v, want %t", got, err, want)
		}
	}
	own := i.ask(wlock.Mutex)
	renews(own.Lock, false)
	l := i.take(i.c, own)
	renews(l, true)
	other := l
	other.Token--
	renews(other, false)
	other = l
	other.Owner[15] ^= 1
	renews(other, false)
}

// 12, 13: the heaviest first, and equal ones by age.
func TestWaitersAreServedByWeightThenByAge(t *testing.T) {
	i := newInterop(t)
	last := i.take(i.c, i.ask(wlock.Mutex))
	waits := make([]<-chan wlock.Lock, 4)
	for at, weight := range []int{1, 10, 5, 10} {
		a := i.ask(wlock.Mutex)
		a.Weight = weight
		waits[at] = i.wait(t.Context(), a)
		i.settled(at + 1)
	}
	for _, at := range []int{1, 3, 2, 0} {
		i.free(last, true, false)
		next := <-waits[at]
		if next.Token <= last.Token {
			t.Errorf("token %d after %d", next.Token, last.Token)
		}
		last = next
	}
	i.free(last, true, false)
}

// 15: an abandoned waiter is granted the lock in time, and releases it.
func TestAWaiterThatHasLeftKeepsNothing(t *testing.T) {
	i := newInterop(t)
	held := i.take(i.c, i.ask(wlock.Mutex))
	ctx, leave := context.WithCancel(t.Context())
	gone := i.wait(ctx, i.ask(wlock.Mutex))
	i.settled(1)
	leave()
	<-gone
	i.free(held, true, false)
	bound, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if g, err := i.c.WaitLock(bound, i.ask(wlock.Mutex)); err != nil {
		t.Errorf("the next waiter: %v", err)
	} else {
		i.free(g.Lock, true, false)
	}
}

// 18, 20: a watcher is told of a release and of an expiry.
func TestAWatcherIsToldThatAKeyIsFree(t *testing.T) {
	i := newInterop(t)
	if err := i.d.Watch(t.Context(), i.key); err != nil { // the key is free
		t.Fatal(err)
	}
	for _, expires := range []bool{false, true} {
		a := i.ask(wlock.Mutex)
		if expires {
			a.TTL = 300 * time.Millisecond
		}
		l := i.take(i.c, a)
		told := make(chan error)
		go func() { told <- i.d.Watch(i.Context(), i.key) }()
		if !expires {
			i.settled(1)
			i.free(l, true, false)
		}
		if err := <-told; err != nil {
			t.Error(err)
		}
	}
}

// 28.
func TestReadersShareAndWritersDoNot(t *testing.T) {
	i := newInterop(t)
	one, two := i.take(i.c, i.ask(wlock.Read)), i.take(i.d, i.ask(wlock.Read))
	i.refused(i.c, i.ask(wlock.Write))
	writer := i.wait(t.Context(), i.ask(wlock.Write))
	i.settled(1)
	i.refused(i.c, i.ask(wlock.Read)) // readers do not overtake a writer
	if l, held, err := i.d.See(t.Context(), one); !held || l != one || err != nil {
		t.Errorf("a reader's own lock is shown as %+v (%t, %v), want %+v", l, held, err, one)
	}
	i.free(one, true, false)
	i.free(one, false, false)
	i.free(two, true, false)
	w := <-writer
	i.refused(i.c, i.ask(wlock.Read))
	own := i.ask(wlock.Read)
	own.Owner = w.Owner
	down := i.take(i.d, own) // a writer may read
	i.free(w, true, false)
	i.take(i.c, i.ask(wlock.Read))
	i.free(down, true, false)
}

// 31, 21: keys of all groups at once, and locks that outlive their connection.
func TestALockOutlivesItsConnection(t *testing.T) {
	cfg, key, _ := anyCluster(t)
	c := client(t, cfg)
	for n := range 40 {
		a := wlock.Ask{Lock: wlock.Lock{Key: fmt.Sprint(key, n), Owner: lease.NewOwner()}, TTL: time.Minute}
		if _, err := c.TryLock(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	d := client(t, cfg)
	for n := range 40 {
		a := wlock.Ask{Lock: wlock.Lock{Key: fmt.Sprint(key, n), Owner: lease.NewOwner()}, TTL: time.Second}
		if _, err := d.TryLock(t.Context(), a); !errors.Is(err, wlock.ErrRefused) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// 32, and what servers would take.
func TestKeysThatServersCannotEchoAreRefused(t *testing.T) {
	i := newInterop(t)
	for _, key := range []string{"é", "\xff", "\U0001F512", strings.Repeat("k", wlock.MaxKey+1)} {
		a := i.ask(wlock.Mutex)
		a.Key = key
		if _, err := i.c.TryLock(t.Context(), a); !errors.Is(err, lease.ErrInvalidKey) {
			t.Errorf("%.20q: %v", key, err)
		}
	}
	for _, key := range []string{"", "a b^!_", "\x00\x01", strings.Repeat("k", wlock.MaxKey)} {
		a := i.ask(wlock.Mutex)
		if a.Key = key; key != "" {
			a.Key = i.key + key
			a.Key = a.Key[:min(len(a.Key), wlock.MaxKey)]
		}
		l := i.take(i.c, a)
		i.free(l, true, false)
	}
	for _, d := range []time.Duration{0, -time.Second, 25 * 24 * time.Hour} {
		a := i.ask(wlock.Mutex)
		a.TTL = d
		if _, err := i.c.TryLock(t.Context(), a); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("a TTL of %s: %v", d, err)
		}
	}
	none := i.ask(wlock.Mutex)
	none.Owner = lease.Owner{}
	heavy := i.ask(wlock.Mutex)
	heavy.Weight = 11
	for _, a := range []wlock.Ask{none, heavy} {
		if _, err := i.c.TryLock(t.Context(), a); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// 3.
func TestARegistryWithoutTheClusterIsATypedError(t *testing.T) {
	cfg, _, _ := anyCluster(t)
	cfg.Cluster = "default_KEY"
	if _, err := wlock.New(t.Context(), cfg); !errors.Is(err, wlock.ErrCluster) {
		t.Errorf("%v", err)
	}
	cfg.Cluster = cluster
	cfg.Groups, cfg.Patience = 16, 300*time.Millisecond
	_, err := wlock.New(t.Context(), cfg)
	for ; !errors.Is(err, wlock.ErrIncomplete) && cfg.Patience < time.Minute; cfg.Patience *= 4 {
		_, err = wlock.New(t.Context(), cfg) // a busy machine hears of no group in so short a time
	}
	if !errors.Is(err, wlock.ErrIncomplete) {
		t.Errorf("%v", err)
	}
}
