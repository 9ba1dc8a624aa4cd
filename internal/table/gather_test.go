package table

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rowlockdb/rowlock/lease"
)

// A driver panics in the call of one reader, whose program recovers: the others are not kept
// waiting for its answer.
func TestAPanicEndsAGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, began := make(chan struct{}), make(chan struct{})
		g := &gather{verb: "share"}
		g.run = func(_ context.Context, note string, reqs []lease.RenewRequest) []member {
			if note == "panics" {
				close(began)
				<-first
				panic("a driver's")
			}
			return make([]member, len(reqs))
		}
		reqs := []lease.RenewRequest{{Lease: lease.Lease{Key: "k", Owner: lease.NewOwner()}}}
		ask := func(note string) {
			defer func() { _ = recover() }()
			g.do(t.Context(), note, reqs)
		}
		go ask("panics")
		<-began
		var answered atomic.Int32
		go func() { ask("beside"); answered.Add(1) }()
		synctest.Wait()
		close(first)
		synctest.Wait()
		go func() { ask("after"); answered.Add(1) }()
		synctest.Wait()
		if n := answered.Load(); n != 2 || g.asks("k") {
			t.Errorf("%d of two requests are answered; under way: %t", n, g.asks("k"))
		}
	})
}

// The same for what ends reader groups: all later releases of readers would wait in vain.
func TestAPanicEndsAGlance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, began := make(chan struct{}), make(chan struct{})
		g := &glance{}
		g.end = func(_ context.Context, keys []string) map[string]lease.Released {
			if keys[0] == "panics" {
				close(began)
				<-first
				panic("a driver's")
			}
			return map[string]lease.Released{keys[0]: {Awaited: true}}
		}
		var awaited atomic.Int32
		look := func(key string) {
			defer func() { _ = recover() }()
			out := new(lease.Released)
			g.look(t.Context(), []lease.Lease{{Key: key}}, []*lease.Released{out})
			if out.Awaited {
				awaited.Add(1)
			}
		}
		go look("panics")
		<-began
		go look("beside")
		synctest.Wait()
		close(first)
		synctest.Wait()
		go look("after")
		synctest.Wait()
		if n := awaited.Load(); n != 2 {
			t.Errorf("%d of two looks have ended their reader groups", n)
		}
	})
}
