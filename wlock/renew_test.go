package wlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

// stolen has a holder extend its lease while the master is paused, which goes on by what it knew
// when the others have another master. It reports whether a stranger got the key meanwhile.
func stolen(t *testing.T, asJava bool) (taken bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := wlocktest.New(wlocktest.Options{Nodes: 3, Groups: 1}, cluster)
		defer c.Close()
		cfg := config(c)
		cfg.Groups = 1
		holder, stranger := open(t, cfg), open(t, cfg)
		defer holder.Close()
		defer stranger.Close()
		if asJava {
			holder.RenewsAsJava()
		}
		b := &bed{T: t, s: holder}
		q := asks()
		l := lease.Lease{Key: "k", Owner: q.Owner, Token: b.acquire(holder, q).Token}
		other := asks()
		other.Key = "x"
		b.acquire(stranger, other) // is connected
		paused := c.Master(0)
		paused.Pause()
		got := make(chan lease.Acquired)
		go func() { got <- b.acquire(stranger, asks()) }() // waits in the paused node's connection
		synctest.Wait()
		c.Elect()
		for range 3 {
			time.Sleep(ttl / 2)
			b.renew(l, lease.Extended)
		}
		stale := make(chan lease.Acquired)
		go func() {
			<-got
			time.Sleep(time.Minute)
			stale <- lease.Acquired{}
		}()
		paused.Resume()
		synctest.Wait()
		owner, _, _ := c.Held(wire("k"))
		taken = lease.Owner(owner) != q.Owner
		paused.CatchUp()
		<-stale
	})
	return taken
}

// What was seen on a running cluster: 14 of 30 renewed locks went to strangers, and 0 of 160 that
// were acquired again.
func TestALockThatIsRenewedCanBeStolenAndOneThatIsAcquiredAgainCannot(t *testing.T) {
	if !stolen(t, true) {
		t.Error("RENEW was safe: the double shows less than the real cluster")
	}
	if stolen(t, false) {
		t.Error("a lease that was extended by acquiring was stolen")
	}
}

// A late RENEW makes a lock again that was released.
func TestARenewalRevivesAReleasedLockOfWhichAServerIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := wlocktest.New(wlocktest.Options{Nodes: 3, Groups: 1}, cluster)
		defer c.Close()
		cfg := config(c)
		cfg.Groups = 1
		first, second := client(t, cfg), client(t, cfg)
		defer first.Close()
		defer second.Close()
		own := wlock.Ask{Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: ttl}
		g, err := first.TryLock(t.Context(), own)
		if err != nil {
			t.Fatal(err)
		}
		behind := c.Master(0)
		behind.Pause()
		go func() { _, _, _ = first.RenewLock(t.Context(), g.Lock, ttl) }()
		synctest.Wait()
		c.Elect()
		c.Push()
		synctest.Wait()
		if freed, _, err := second.ReleaseLock(t.Context(), g.Lock); !freed || err != nil {
			t.Fatal(freed, err)
		}
		behind.Resume()
		synctest.Wait()
		if owner, token, held := c.Held(wire("k")); !held || lease.Owner(owner) != own.Owner || token != int64(g.Token) {
			t.Errorf("%x with %d (%t): the double shows less than the real cluster", owner, token, held)
		}
	})
}

func client(tb testing.TB, cfg wlock.Config) *wlock.Client {
	tb.Helper()
	c, err := wlock.New(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}
