package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// own is how many keys a goroutine takes in turn.
const own = 8

// keys are the keys of one database, all of one length. Recurring ones are made once, so that making them costs no turn
// anything.
type keys struct {
	recurring sync.Map // by place
	fresh     atomic.Int64
}

type place struct {
	series byte
	worker int
	n      int
}

func (k *keys) next(c contender, worker, n int) string {
	if c.fresh {
		return key(place{c.series, worker, int(k.fresh.Add(1))})
	}
	at := place{c.series, worker, n % own}
	if known, ok := k.recurring.Load(at); ok {
		return known.(string)
	}
	known, _ := k.recurring.LoadOrStore(at, key(at))
	return known.(string)
}

func key(at place) string { return fmt.Sprintf("bench/%c/%02d/%010d", at.series, at.worker, at.n) }
