package race

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Own is how many keys a goroutine takes in turn.
const Own = 8

// Keys are the keys of one database, all of one length. Recurring ones are made once, so that
// making them costs no turn anything.
type Keys struct {
	recurring sync.Map // by place
	fresh     atomic.Int64
	walked    atomic.Int64
}

type place struct {
	series byte
	worker int
	n      int
}

// Next is the key of a contender's worker for its nth pair.
func (k *Keys) Next(c Contender, worker, n int) string {
	if c.Fresh {
		return key(place{c.Series, worker, int(k.fresh.Add(1))})
	}
	if c.Among > 0 {
		return Among(c.Series, c.Among, int(k.walked.Add(1)))
	}
	at := place{c.Series, worker, n % Own}
	if known, ok := k.recurring.Load(at); ok {
		return known.(string)
	}
	known, _ := k.recurring.LoadOrStore(at, key(at))
	return known.(string)
}

func key(at place) string { return Key(at.series, at.worker, at.n) }

// stride is how far apart neighbors of a walk are. It has no divisor in common with a power of ten.
const stride = 618_033

// Among is the nth step of a walk through so many keys, a power of ten: it comes to each of them
// before it comes to one again, and neighbors in time are none in the table.
func Among(series byte, keys, n int) string { return Key(series, 0, n*stride%keys) }

// Key is a key of a series.
func Key(series byte, worker, n int) string {
	return fmt.Sprintf("bench/%c/%02d/%010d", series, worker, n)
}
