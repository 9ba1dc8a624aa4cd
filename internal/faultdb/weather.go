package faultdb

import (
	"database/sql/driver"
	"math/rand/v2"
	"sync"
	"time"
)

// Weather breaks one operation in nine while it is bad: it is not sent, or its answer is lost or
// late, or it arrives when the caller has tried again. Some drivers have database/sql try again by
// themselves. More would leave few calls that end well.
type Weather struct {
	mu   sync.Mutex
	rng  *rand.Rand
	late []*Gate
	bad  bool
}

// NewWeather returns one that is fair.
func NewWeather(seed uint64) *Weather { return &Weather{rng: rand.New(rand.NewPCG(seed, 1))} }

// Inject is what becomes of an operation.
func (w *Weather) Inject(Op) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	upTo := func(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }
	if !w.bad {
		return None
	}
	says := []error{nil, nil, driver.ErrBadConn}[w.rng.IntN(3)]
	switch n := w.rng.IntN(200); {
	case n < 5:
		return Delay(upTo(time.Second))
	case n < 10:
		return DelayAfter(upTo(time.Second))
	case n < 13:
		return FailBeforeSend().Reporting(says)
	case n < 17:
		return LoseReply().Reporting(says)
	case n < 20:
		return DelayAfter(upTo(time.Second)).And(LoseReply()).Reporting(says)
	case n < 23:
		gate := NewGate()
		w.late = append(w.late, gate)
		time.AfterFunc(upTo(2*time.Second), gate.Release)
		return SendLate(gate)
	}
	return None
}

// Turn makes the weather bad or fair. When Turn has returned, what was late has arrived.
func (w *Weather) Turn(bad bool) {
	w.mu.Lock()
	w.bad = bad
	late := w.late
	w.late = nil
	w.mu.Unlock()
	for _, gate := range late {
		gate.Release()
		gate.Wait()
	}
}
