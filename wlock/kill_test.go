package wlock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

// strike has the master of a key fail in the middle of the next request of a type: before or after
// it has carried it out, for good or for a pause after which it acts on what it knew. The others
// have a new master after ten seconds.
func strike(c *wlocktest.Cluster, of frame.Type, after, pauses bool) {
	n := c.Master(int32(wlock.Place(wire("k"), 3)))
	fault := map[[2]bool]wlocktest.Fault{
		{false, false}: wlocktest.CutBefore, {false, true}: wlocktest.LoseBefore,
		{true, false}: wlocktest.CutAfter, {true, true}: wlocktest.LoseAfter,
	}[[2]bool{after, pauses}]
	var struck atomic.Bool
	n.Fault(func(q *frame.Request) wlocktest.Fault {
		if q.Type != of || struck.Swap(true) {
			return wlocktest.None
		}
		go func() {
			if pauses {
				n.Pause()
			} else {
				n.Kill()
			}
			time.Sleep(10 * time.Second)
			c.Elect()
			time.Sleep(15 * time.Second)
			if !pauses {
				n.Start()
				return
			}
			n.Resume()
			time.Sleep(time.Second)
			n.CatchUp()
		}()
		return fault
	})
}

func TestEveryCallOutlivesItsServer(t *testing.T) {
	for _, of := range []frame.Type{frame.Acquire, frame.Get, frame.Release} {
		for i := range 4 {
			after, pauses := i%2 == 1, i/2 == 1
			t.Run(fmt.Sprintf("type %d, after %t, pauses %t", of, after, pauses), func(t *testing.T) {
				three(t, func(t *testing.T, c *wlocktest.Cluster, cfg wlock.Config) {
					b := &bed{T: t, c: c, s: open(t, cfg), other: open(t, cfg)}
					defer b.s.Close()
					defer b.other.Close()
					b.outlive(of, func() { strike(c, of, after, pauses) })
				})
			})
		}
	}
}

// outlive has each call that sends such a request meet the strike.
func (b *bed) outlive(of frame.Type, strike func()) {
	b.Helper()
	q, began := asks(), time.Now()
	if of == frame.Acquire {
		strike()
	}
	l := lease.Lease{Key: "k", Owner: q.Owner, Token: b.acquire(b.s, q).Token}
	b.held(q.Owner)
	if of == frame.Acquire {
		time.Sleep(ttl / 2)
		b.renew(l, lease.Extended)
		time.Sleep(ttl - 3*time.Second) // what was paused goes on
		b.renew(l, lease.Extended)
		b.held(q.Owner)
		strike() // in the middle of a renewal
		b.renew(l, lease.Extended)
		b.held(q.Owner)
	} else {
		strike()
	}
	if rows, err := b.other.Inspect(b.Context(), lease.Filter{Keys: []string{"k"}}); err != nil || len(rows) != 1 {
		b.Errorf("inspect: %+v, %v", rows, err)
	}
	b.release(l, false)
	if took := time.Since(began); took < 9*time.Second {
		b.Errorf("it took %s: no server was struck", took)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	b.held(lease.Owner{})
	if a := b.acquire(b.other, asks()); !a.Granted || a.Token <= l.Token {
		b.Errorf("the next: %+v after token %d", a, l.Token)
	}
}
