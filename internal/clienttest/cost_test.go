package clienttest

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/rowlockdb/rowlock"
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

// The rows in memory are counted too: a client on a database needs less.
func TestHeapPerLock(t *testing.T) {
	const locks, most = 10_000, 1024
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	s := memstore.New()
	c := Client(t, s, nil)
	keys := make([]string, locks)
	for i := range keys {
		keys[i] = fmt.Sprintf("invoice/%08d", i)
	}
	goroutines, before := runtime.NumGoroutine(), heap()
	held := make([]*rowlock.Lock, locks)
	for i := range held {
		held[i] = Take(t, c, keys[i])
	}
	after := heap()
	each := (after - before) / locks
	t.Logf("%d bytes of heap and %d goroutines for %d locks: %d bytes each", after-before,
		runtime.NumGoroutine()-goroutines, locks, each)
	if each > most {
		t.Errorf("%d bytes of heap a lock, want at most %d", each, most)
	}
	runtime.KeepAlive(held)
}

// The client keeps nothing of a lock that has ended, in whatever way.
func TestLocksThatAreOverAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, NewScript(), nil)
		ends := map[string]func(l *rowlock.Lock){
			"unlocked":      func(l *rowlock.Lock) { _ = l.Unlock(t.Context()) },
			"lost":          func(l *rowlock.Lock) { <-l.Context().Done() },
			"held too long": func(l *rowlock.Lock) { <-l.Context().Done() },
		}
		over := make(map[string]weak.Pointer[rowlock.Lock])
		for how, end := range ends {
			opt := rowlock.NoRenew()
			if how == "held too long" {
				opt = rowlock.MaxHold(time.Minute)
			}
			l := Take(t, c, how, opt)
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
