package faultdb

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Injector chooses the fault of each operation. It is asked before the operation, once for each, by as many
// goroutines as there are connections. Operations on a connection that is already cut are not asked about.
type Injector interface {
	Inject(op Op) Fault
}

// Func makes an injector of a function.
type Func func(op Op) Fault

// Inject calls the function.
func (f Func) Inject(op Op) Fault { return f(op) }

// Always injects f into every operation.
func Always(f Fault) Injector {
	return Func(func(Op) Fault { return f })
}

// Nth injects f into the n-th operation that reaches it, counted from 1, and never again. Put it behind a match to
// count only those: OnMatch("UPDATE", Nth(1, LoseReply())).
func Nth(n int64, f Fault) Injector {
	if n < 1 {
		panic("faultdb: Nth counts from 1")
	}
	var seen atomic.Int64
	return Func(func(Op) Fault {
		if seen.Add(1) != n {
			return None
		}
		return f
	})
}

// Randomly injects f with probability p, drawn from a generator with the given seed. The same seed gives the same
// faults only where the operations come in the same order.
func Randomly(p float64, seed uint64, f Fault) Injector {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return Func(func(Op) Fault {
		mu.Lock()
		defer mu.Unlock()
		if rng.Float64() >= p {
			return None
		}
		return f
	})
}

// Any asks every injector and injects the first fault one of them answers with. The others are asked all the same,
// so that a Log, a Counter or an Nth sees each operation wherever it stands in the list.
func Any(injectors ...Injector) Injector {
	return Func(func(op Op) Fault {
		chosen := None
		for _, inj := range injectors {
			if f := inj.Inject(op); chosen.IsNone() {
				chosen = f
			}
		}
		return chosen
	})
}

// Toggle is an injector with a switch. While it is off, the injector behind it is not asked: an Nth does not count.
type Toggle struct {
	inj Injector
	on  atomic.Bool
}

// NewToggle returns a toggle that is off, so that a test can build its tables in peace.
func NewToggle(inj Injector) *Toggle { return &Toggle{inj: inj} }

// On switches the faults on.
func (t *Toggle) On() { t.on.Store(true) }

// Off switches the faults off.
func (t *Toggle) Off() { t.on.Store(false) }

// Inject asks the injector behind the toggle if it is on.
func (t *Toggle) Inject(op Op) Fault {
	if !t.on.Load() {
		return None
	}
	return t.inj.Inject(op)
}

// Counter counts what passes through it. A test that expects a fault asserts that it happened: a match that no longer
// matches after somebody edited the SQL makes every such test pass.
type Counter struct {
	inj         Injector
	ops, faults atomic.Int64
}

// NewCounter counts the operations that inj is asked about and the faults it injects.
func NewCounter(inj Injector) *Counter { return &Counter{inj: inj} }

// Ops returns how many operations came.
func (c *Counter) Ops() int64 { return c.ops.Load() }

// Faults returns how many of them got a fault.
func (c *Counter) Faults() int64 { return c.faults.Load() }

// Inject counts and asks the injector behind the counter.
func (c *Counter) Inject(op Op) Fault {
	c.ops.Add(1)
	f := c.inj.Inject(op)
	if !f.IsNone() {
		c.faults.Add(1)
	}
	return f
}
