package clienttest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/memstore"
)

func TestLocksCostNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, memstore.New(), &rowlock.Config{})
		idle := runtime.NumGoroutine()
		for i := range 1000 {
			Take(t, c, fmt.Sprint(i))
		}
		if more := runtime.NumGoroutine() - idle; more > 10 { // those of other tests, on their way out
			t.Errorf("%d goroutines for 1000 locks", more)
		}
		time.Sleep(10 * TTL)
		synctest.Wait()
		if more := runtime.NumGoroutine() - idle; more > 10 { // those of other tests, on their way out
			t.Errorf("%d goroutines for 1000 locks after some renewals", more)
		}
	})
}

// A goroutine that waits costs the database nothing, whether all wait for one key or each for
// another of many: one statement polls for all of them.
func TestTenThousandWaitingGoroutinesCostOnePoller(t *testing.T) {
	waiters := race.Few(1_000, 10_000)
	for _, keys := range []int{1, 100} {
		t.Run(fmt.Sprint(keys, " keys"), func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				key := func(i int) string { return fmt.Sprintf("%04d", i%keys) }
				for i := range keys {
					Another(t, s, key(i), time.Hour)
				}
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for i := range waiters {
					all.Go(func() { _, err := c.Lock(ctx, key(i)); WantIs(t, "Lock", err, context.Canceled) })
				}
				time.Sleep(10 * time.Second) // polls are as rare as they get
				before := s.Polled()
				bids, _, _ := s.Calls()
				time.Sleep(time.Minute)
				if n := s.Polled() - before; n < 200 || n > 300 {
					t.Errorf("%d polls in a minute, want one every 250 ms", n)
				}
				if now, _, _ := s.Calls(); now > bids {
					t.Errorf("%d acquires while the keys are held", now-bids)
				}
				if n := c.Stats().Waiting; n != int64(waiters) {
					t.Errorf("%d wait, want %d", n, waiters)
				}
				stop()
				all.Wait()
			})
		})
	}
}

// unkept is Take of a lock that may be forgotten.
func unkept(
	t *testing.T, c *rowlock.Client, key string, opts ...rowlock.Option,
) *rowlock.Lock {
	t.Helper()
	l, err := c.TryLock(t.Context(), key, opts...)
	if err != nil {
		t.Fatalf("TryLock %q: %v", key, err)
	}
	return l
}

// The rows in memory are counted too: a client on a database needs less. The median of several
// measurements counts, because what another test has left may be collected in the midst of one.
func TestHeapPerLock(t *testing.T) {
	race.Skip(t)
	const most = 600
	var held []*rowlock.Lock // of all measurements: what goes in one would be missing in the next
	each := make([]int, 5)
	for i := range each {
		each[i] = heapPerLock(t, &held)
	}
	runtime.KeepAlive(held)
	t.Logf("bytes of heap a lock: %d", each)
	slices.Sort(each)
	if median := each[len(each)/2]; median > most || median < 100 {
		t.Errorf("%d bytes of heap a lock, want at most %d, and more than a key", median, most)
	}
}

// heapPerLock is how much the heap grows with each lock that a client holds.
func heapPerLock(t *testing.T, all *[]*rowlock.Lock) int {
	t.Helper()
	const locks = 10_000
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	c := Client(t, memstore.New(), nil)
	keys := make([]string, locks)
	for i := range keys {
		keys[i] = fmt.Sprintf("invoice/%08d", i)
	}
	before, held := heap(), make([]*rowlock.Lock, locks)
	for i := range held {
		held[i] = unkept(t, c, keys[i])
	}
	after := heap()
	*all = append(*all, held...)
	return (after - before) / locks
}

// The client keeps nothing of a lock that has ended, in whatever way.
func TestLocksThatAreOverAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, NewScript(), nil)
		ends := map[string]func(l *rowlock.Lock){
			"unlocked":      func(l *rowlock.Lock) { _ = l.Unlock(t.Context()) },
			"lost":          func(l *rowlock.Lock) { <-l.Context().Done() },
			"held too long": func(l *rowlock.Lock) { <-l.Context().Done() },
			"idle":          func(l *rowlock.Lock) { <-l.Context().Done() },
		}
		over := make(map[string]weak.Pointer[rowlock.Lock])
		for how, end := range ends {
			opt := rowlock.NoRenew()
			switch how {
			case "held too long":
				opt = rowlock.MaxHold(time.Minute)
			case "idle":
				opt = rowlock.MaxIdle(time.Minute)
			}
			l := unkept(t, c, how, opt)
			end(l)
			over[how] = weak.Make(l)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		runtime.GC()
		runtime.GC()
		for how, p := range over {
			if p.Value() != nil {
				t.Errorf("a lock that was %s is still referred to", how)
			}
		}
	})
}
