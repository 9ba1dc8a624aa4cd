package wlock_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

func three(t *testing.T, f func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := wlocktest.New(wlocktest.Options{Nodes: 3, Groups: 3}, cluster)
		defer c.Close()
		cfg := config(c)
		cfg.Groups = 3
		f(t, c, cfg)
	})
}

// Two processes wait for a key whose master dies. The survivors name the dead one for ten seconds.
func TestWaitersSeeAMasterChangeAsOnePause(t *testing.T) {
	three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
		group := int32(wlock.Place(wire("k"), 3))
		var clients []*rowlock.Client
		for range 2 {
			s := open(t, cfg)
			defer s.Close()
			r, err := rowlock.New(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			clients = append(clients, r)
		}
		held, err := clients[0].Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var got atomic.Int64
		for i := range 8 {
			all.Go(func() {
				l, err := clients[i%2].Lock(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				got.Add(1)
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(2 * time.Second)
		c.Master(group).Kill()
		time.AfterFunc(10*time.Second, c.Elect)
		time.Sleep(5 * time.Second)
		// The client gives up before there is a master again, and releases the lock later.
		if err := held.Unlock(t.Context()); err != nil && !errors.Is(err, lease.ErrUnknown) {
			t.Errorf("unlock while there is no master: %v", err)
		}
		began := time.Now()
		all.Wait()
		if took := time.Since(began); got.Load() != 8 || took > 10*time.Second {
			t.Errorf("%d of 8 after %s", got.Load(), took)
		}
	})
}

// WaitLock waits on when the queue is lost with its master.
func TestAWaiterInTheQueueOutlivesItsMaster(t *testing.T) {
	three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
		holder, waiter := client(t, cfg), client(t, cfg)
		defer holder.Close()
		defer waiter.Close()
		a := wlock.Ask{Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: time.Minute}
		g, err := holder.TryLock(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			a := a
			a.Owner = lease.NewOwner()
			_, err := waiter.WaitLock(t.Context(), a)
			done <- err
		}()
		synctest.Wait()
		c.Master(int32(wlock.Place(wire("k"), 3))).Kill()
		time.Sleep(10 * time.Second)
		c.Elect()
		time.Sleep(time.Second)
		if freed, _, err := holder.ReleaseLock(t.Context(), g.Lock); !freed || err != nil {
			t.Fatal(freed, err)
		}
		released := time.Now()
		if err := <-done; err != nil || time.Since(released) > time.Second {
			t.Errorf("%v after %s", err, time.Since(released))
		}
	})
}

// A list without some groups would route the key to another, where it is free.
func TestAShorterListOfGroupsMovesNoKey(t *testing.T) {
	three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
		s, other := open(t, cfg), open(t, cfg)
		defer s.Close()
		defer other.Close()
		b := &bed{T: t}
		for i := range 20 {
			q := asks()
			q.Key = fmt.Sprint("k", i)
			b.acquire(s, q)
		}
		c.Hide(1)
		c.Push()
		synctest.Wait()
		for i := range 20 {
			q := asks()
			q.Key = fmt.Sprint("k", i)
			if b.acquire(other, q).Granted {
				t.Errorf("%s was granted twice", q.Key)
			}
		}
		cfg.Patience = 3 * time.Second
		if late, err := wlock.New(t.Context(), cfg); !errors.Is(err, wlock.ErrIncomplete) {
			t.Errorf("a client that begins now: %v, %v", late, err)
		}
	})
}

// The registry asks for nothing, so that a change without a push is found by a poll.
func TestAChangeIsLearnedByAPoll(t *testing.T) {
	three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
		s := open(t, cfg)
		defer s.Close()
		b := &bed{T: t}
		b.acquire(s, asks())
		c.Master(int32(wlock.Place(wire("k"), 3))).Kill()
		c.Elect()
		time.Sleep(2 * time.Minute)
		began := time.Now()
		if q := asks(); !b.acquire(s, q).Granted || time.Since(began) > 0 {
			t.Errorf("after %s", time.Since(began))
		}
	})
}

func TestFramesThatAreNoneAreTypedErrors(t *testing.T) {
	huge := func(f []byte) []byte { binary.BigEndian.PutUint32(f, 3<<30); return f }
	for want, mangle := range map[error]func([]byte) []byte{
		wlock.ErrTooLong: huge,
		wlock.ErrCorrupt: func(f []byte) []byte { return append(f[:len(f)-1], 0) },
	} {
		inBubble(t, func(b *bed) {
			b.n.Mangle(mangle)
			began := time.Now()
			_, err := b.s.Acquire(b.Context(), []lease.AcquireRequest{asks()})
			if !errors.Is(err, want) || !errors.Is(err, lease.ErrUnknown) || time.Since(began) > 20*time.Second {
				b.Errorf("%v after %s, want %v", err, time.Since(began), want)
			}
		})
	}
}

// A server whose answer to a key is about another cannot be understood: what it says is no answer.
func TestAnAnswerAboutAnotherKeyIsNone(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.n.MangleOnce(func(f []byte) []byte { f[25+8] ^= 1; return f })
		if a := b.acquire(b.s, asks()); !a.Granted || !a.Unknown {
			b.Errorf("%+v, want it asked again", a)
		}
	})
}

func TestAServerThatIsAboutToStopIsAvoidedForAMoment(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.acquire(b.s, asks())
		b.n.Reboot()
		synctest.Wait()
		began := time.Now()
		b.acquire(b.s, asks())
		if took := time.Since(began); took < time.Second/2 || took > 2*time.Second {
			b.Errorf("the only server was asked again after %s", took)
		}
	})
}

// 30 of the protocol's list: the server closes what is idle for two minutes.
func TestAnIdleConnectionShowsSignsOfLife(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.acquire(b.s, asks())
		var beats atomic.Int64
		b.n.Mangle(func(f []byte) []byte {
			if frame.Type(f[10]) == frame.Heartbeat {
				beats.Add(1)
			}
			return f
		})
		time.Sleep(time.Minute)
		if n := beats.Load(); n < 10 || n > 20 {
			b.Errorf("%d in a minute", n)
		}
	})
}

func TestAClosedStoreSaysSo(t *testing.T) {
	inBubble(t, func(b *bed) {
		_ = b.s.Close()
		if _, err := b.s.Acquire(b.Context(), []lease.AcquireRequest{asks()}); !errors.Is(err, lease.ErrClosed) {
			b.Error(err)
		}
		if err := b.s.Listen(b.Context(), func(string) {}); !errors.Is(err, lease.ErrClosed) {
			b.Error(err)
		}
	})
}

func TestAConfigThatIsNoneIsRefused(t *testing.T) {
	for _, cfg := range []wlock.Config{
		{}, {Registry: []string{"x:1"}}, {Cluster: "x"}, {Registry: []string{"x:1"}, Cluster: "x", Groups: -1},
	} {
		if _, err := wlock.New(t.Context(), cfg); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	cfg := wlock.Config{Registry: []string{l.Addr().String()}, Cluster: cluster, Patience: 50 * time.Millisecond}
	if _, err := wlock.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "registry") {
		t.Errorf("without a registry: %v", err)
	}
}
