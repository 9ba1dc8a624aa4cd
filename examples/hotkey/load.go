package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock"
)

var hotKeys = []string{"likes", "tickets", "frontpage"}

const (
	crowd    = 4                     // workers for each hot key on each side
	holds    = 2 * time.Millisecond  // how long the work takes
	thinking = 40 * time.Millisecond // between two visits to cold keys
)

// account is what a key protects. Its fields are atomic because the race detector does not know of
// locks in another process. No worker adds atomically: the holder reads, works and writes, so that
// two at a time would overwrite each other.
type account struct {
	value atomic.Int64
	token atomic.Int64 // of the last holder
	at    atomic.Int64 // when that wrote
	pause atomic.Int64 // the longest between two, since it was last set to 0
}

// load is everything that is locked, and what the workers have found.
type load struct {
	accounts map[string]*account
	cold     []string
	stop     chan struct{}
	all      sync.WaitGroup
	failures atomic.Int64 // calls that returned an error, and were made again
	lost     atomic.Int64 // locks that ended before the work was done

	mu      sync.Mutex
	counted map[string]int64 // by the workers, each for itself
	fell    []string         // tokens that did not grow
}

func newLoad(cold int) *load {
	l := &load{accounts: make(map[string]*account), stop: make(chan struct{}), counted: make(map[string]int64)}
	for i := range cold {
		l.cold = append(l.cold, fmt.Sprintf("user/%d", i+1))
	}
	for _, keys := range [][]string{hotKeys, l.cold} {
		for _, key := range keys {
			l.accounts[key] = new(account)
		}
	}
	return l
}

// start lets the workers of one side in.
func (l *load) start(ctx context.Context, s *side) {
	for _, key := range hotKeys {
		for range crowd {
			l.all.Go(func() { l.work(ctx, s, func() string { return key }, 0) })
		}
	}
	l.all.Go(func() { l.work(ctx, s, func() string { return l.cold[rand.IntN(len(l.cold))] }, thinking) })
}

// end lets every worker finish what it has begun.
func (l *load) end() {
	close(l.stop)
	l.all.Wait()
}

// work is a worker's life. It also counts what it has done where no other worker writes.
func (l *load) work(ctx context.Context, s *side, next func() string, pause time.Duration) {
	mine := make(map[string]int64)
	for !l.ended(ctx, pause) {
		key := next()
		err := s.Do(ctx, key, func(ctx context.Context, lock *rowlock.Lock) error {
			if !l.change(ctx, lock) {
				return context.Cause(ctx)
			}
			mine[key]++
			return nil
		})
		if err != nil && ctx.Err() == nil {
			l.failures.Add(1)
			l.ended(ctx, thinking)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, n := range mine {
		l.counted[key] += n
	}
}

// ended says whether to go, after a pause.
func (l *load) ended(ctx context.Context, pause time.Duration) bool {
	if pause > 0 {
		select {
		case <-l.stop:
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	select {
	case <-l.stop:
		return true
	default:
		return ctx.Err() != nil
	}
}

// change reads, works, and writes what it has read plus one. It writes nothing if the lock was lost
// meanwhile. Data in a database would be safe even so, because there the write begins with
// lock.Fence.
func (l *load) change(ctx context.Context, lock *rowlock.Lock) bool {
	a := l.accounts[lock.Key()]
	value, token := a.value.Load(), a.token.Load()
	time.Sleep(holds)
	if ctx.Err() != nil {
		l.lost.Add(1)
		return false
	}
	//rowlockvet:ignore it counts broken promises, and protects nothing
	if int64(lock.Token()) <= token {
		l.mu.Lock()
		l.fell = append(l.fell, fmt.Sprintf("%s: %d after %d", lock.Key(), lock.Token(), token))
		l.mu.Unlock()
	}
	a.value.Store(value + 1)
	a.token.Store(int64(lock.Token()))
	now := time.Now().UnixNano()
	if last := a.at.Swap(now); last != 0 && now-last > a.pause.Load() {
		a.pause.Store(now - last)
	}
	return true
}

// standstill is the longest time between two changes of a hot key, since forget.
func (l *load) standstill() (longest time.Duration) {
	for _, key := range hotKeys {
		longest = max(longest, time.Duration(l.accounts[key].pause.Load()))
	}
	return longest
}

func (l *load) forget() {
	for _, key := range hotKeys {
		l.accounts[key].pause.Store(0)
	}
}
