package main

import (
	"errors"
	"runtime"
	"sync/atomic"
)

// errShared says that a lock was none.
var errShared = errors.New("two had the key at once")

// guard watches a key. Its count is read and written as one would without a lock: if the lock is none, visits get lost.
type guard struct {
	inside atomic.Int32
	count  atomic.Int64 // atomic for the race detector alone: nobody adds to it in one step
	visits atomic.Int64
}

// visit is what is done while one has the key.
func (g *guard) visit() error {
	first := g.inside.Add(1) == 1
	n := g.count.Load()
	runtime.Gosched()
	g.count.Store(n + 1)
	g.inside.Add(-1)
	g.visits.Add(1)
	if !first {
		return errShared
	}
	return nil
}

// check returns errShared if a visit got lost.
func (g *guard) check() error {
	if g.count.Load() != g.visits.Load() {
		return errShared
	}
	return nil
}
