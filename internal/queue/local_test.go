package queue

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// joined returns the nth waiter for the key.
func joined(t *testing.T, q *keys, n int, first bool) *waiter {
	t.Helper()
	w := &waiter{call: &Call{Keys: []string{"k"}, N: n}}
	if e := q.join(w, time.Now(), true); e.first != first {
		t.Fatalf("waiter %d is first: %t", n, e.first)
	}
	return w
}

// handed is a grant that says its number.
func handed(n lease.Token) Grants { return Grants{Each: []Grant{{Answer: lease.Acquired{Token: n}}}} }

// next claims the waiter to which the key can be handed.
func next(q *keys) *waiter {
	w, _ := q.claim("k", true, true)
	return w
}

func woken(t *testing.T, w *waiter, want bool) {
	t.Helper()
	select {
	case signal := <-w.signal:
		if !want || signal.Given {
			t.Errorf("waiter %d was woken: %+v", w.call.N, signal)
		}
	default:
		if want {
			t.Errorf("waiter %d was not woken", w.call.N)
		}
	}
}

func TestOnlyTheHeadIsWoken(t *testing.T) {
	q := new(keys)
	a, b := joined(t, q, 1, true), joined(t, q, 2, false)
	q.lost(a)
	if !q.wake("k") || q.wake("other") {
		t.Error("Wake does not know whether a waiter is there")
	}
	woken(t, b, false)
	woken(t, a, true)
	q.lost(a)
	if !q.won(a) {
		t.Error("Won says that no waiter is left")
	}
	q.wake("k")
	woken(t, b, true)
}

// A waiter may ask on its own account too, as one does that looks for a reader group. A signal that
// comes meanwhile is not lost, and the next one does not wait for it to be read.
func TestASignalThatComesDuringAnAttemptOfTheWaitersOwnIsKept(t *testing.T) {
	q := new(keys)
	a := joined(t, q, 1, true)
	q.lost(a)
	q.wake("k") // while it asks
	q.lost(a)
	done := make(chan struct{})
	go func() { q.wake("k"); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("Wake waits for a signal to be read, with all queues locked")
	}
	woken(t, a, true)
	q.lost(a)
	woken(t, a, true) // for the second Wake, which came during an attempt too
	q.lost(a)
	woken(t, a, false)
}

// A waiter that only asks is woken at the head of the queue. The key is neither handed to it nor
// past it.
func TestAKeyIsNeverHandedToAWaiterThatOnlyAsks(t *testing.T) {
	q := new(keys)
	a := &waiter{call: &Call{Keys: []string{"k", "other"}}}
	first := q.join(a, time.Now(), true).first
	b := joined(t, q, 2, false)
	q.lost(a)
	if w := next(q); !first || w != nil {
		t.Fatalf("first: %t; claimed %+v", first, w)
	}
	q.wake("k")
	woken(t, a, true)
	q.leave(a)
	woken(t, b, true)
	q.lost(b)
	if w := next(q); w != b {
		t.Errorf("claimed %+v", w)
	}
}

// A call that comes while the head asks the database may be about what happened after it was
// answered.
func TestASignalDuringAnAttemptIsNotLost(t *testing.T) {
	q := new(keys)
	a := joined(t, q, 1, true)
	q.wake("k")
	q.wake("k")
	woken(t, a, false)
	q.lost(a)
	woken(t, a, true)
	q.lost(a)
	woken(t, a, false)
}

// A reader asks of its own accord too. A signal that comes meanwhile stays: the next one must not
// wait for room, with all queues locked.
func TestAnAttemptOfOnesOwnAccordKeepsTheSignal(t *testing.T) {
	q := new(keys)
	a, b := joined(t, q, 1, true), joined(t, q, 2, false)
	q.lost(a)
	for range 3 {
		q.wake("k") // and a, which has not seen it, asks and loses
		done := make(chan struct{})
		go func() {
			defer close(done)
			q.lost(a)
			q.wake("k")
			q.lost(a)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the queues stand still")
		}
		woken(t, a, true)
		woken(t, b, false)
		q.lost(a) // after the attempt that the signal was for: it came again meanwhile
		woken(t, a, true)
		q.lost(a)
		woken(t, a, false)
	}
	q.wake("k")
	q.leave(a)
	woken(t, b, true)
}

// Nor is one whose waiter leaves instead of asking.
func TestASignalIsPassedOnByAWaiterThatLeaves(t *testing.T) {
	q := new(keys)
	a, b, c := joined(t, q, 1, true), joined(t, q, 2, false), joined(t, q, 3, false)
	q.leave(b)
	woken(t, c, false)
	q.leave(a)
	woken(t, c, true)
}

func TestAClaimedWaiterIsGivenTheKeyOrReturns(t *testing.T) {
	q := new(keys)
	a, b := joined(t, q, 1, true), joined(t, q, 2, false)
	if next(q) != nil {
		t.Error("claimed while it asks: it could be granted the key twice")
	}
	q.lost(a)
	if next(q) != a {
		t.Fatal("not the head")
	}
	q.giveBack(a)
	woken(t, a, true)
	q.lost(a)
	next(q)
	if !q.give(a, handed(7)) {
		t.Fatal("it has not gone")
	}
	if signal := <-a.signal; !signal.Given || signal.Grant.Each[0].Answer.Token != 7 {
		t.Errorf("got %+v", signal)
	}
	if next(q) != b || q.len("k") != 0 {
		t.Error("the next is not next")
	}
	q.leave(b)
	if q.give(b, handed(8)) {
		t.Error("given to one who has gone")
	}
}

// What is given at the very moment of leaving is not lost either.
func TestLeavingSaysWhatWasGiven(t *testing.T) {
	q := new(keys)
	a := joined(t, q, 1, true)
	q.lost(a)
	q.give(next(q), handed(7))
	if signal := q.leave(a); !signal.Given || signal.Grant.Each[0].Answer.Token != 7 {
		t.Errorf("got %+v", signal)
	}
}

func TestAHeldQueueIsNotWoken(t *testing.T) {
	q := new(keys)
	a := joined(t, q, 1, true)
	q.lost(a)
	q.find("k").holding = true
	q.wake("k")
	woken(t, a, false)
	if next(q) != nil {
		t.Error("claimed from a held line")
	}
	q.resume("k")
	woken(t, a, true)
}

// One key, many goroutines that wait, leave, ask and hand over, at random: at most one has it, and
// no waiter waits for ever.
func TestNoWaiterIsForgotten(t *testing.T) {
	q := new(keys)
	var held atomic.Bool // the database's row
	var served, left atomic.Int64
	var wg sync.WaitGroup
	release := func() {
		if w := next(q); w != nil { // the row goes straight on
			if q.give(w, handed(1)) {
				return
			}
		}
		held.Store(false)
		q.wake("k")
	}
	use := func() { served.Add(1); release() }
	for n := range 16 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for range 2000 {
				w := &waiter{call: &Call{Keys: []string{"k"}, N: n}}
				asks := q.join(w, time.Now(), true).first
				for {
					if asks {
						if held.CompareAndSwap(false, true) {
							q.won(w)
							use()
							break
						}
						q.lost(w)
					}
					patience, short := time.NewTimer(20*time.Second), rng.IntN(8) == 0
					if short {
						patience.Reset(time.Duration(rng.IntN(50)) * time.Microsecond)
					}
					select {
					case signal := <-w.signal:
						if signal.Given {
							use()
						}
						asks = !signal.Given
					case <-patience.C:
						if !short {
							t.Error("forgotten")
						}
						if signal := q.leave(w); signal.Given {
							use()
						}
						left.Add(1)
						asks = false
						w = nil
					}
					if w == nil || !asks {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if held.Load() || q.len("k") != 0 {
		t.Errorf("the row is held: %t; %d wait", held.Load(), q.len("k"))
	}
	t.Logf("%d were served, %d left", served.Load(), left.Load())
}
