package queue

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type (
	queues    = localQueues[int, int]
	intWaiter = localWaiter[int, int]
)

func join(t *testing.T, q *queues, n int, first bool) *intWaiter {
	t.Helper()
	w, got := q.Join("k", n, false, false)
	if got != first {
		t.Fatalf("waiter %d is first: %t", n, got)
	}
	return w
}

func woken(t *testing.T, w *intWaiter, want bool) {
	t.Helper()
	select {
	case signal := <-w.Signal:
		if !want || signal.Given {
			t.Errorf("waiter %d was woken: %+v", w.Want, signal)
		}
	default:
		if want {
			t.Errorf("waiter %d was not woken", w.Want)
		}
	}
}

func TestOnlyTheHeadIsWoken(t *testing.T) {
	q := newLocalQueues[int, int]()
	a, b := join(t, q, 1, true), join(t, q, 2, false)
	q.Lost(a)
	if !q.Wake("k") || q.Wake("other") {
		t.Error("Wake does not know whether a waiter is there")
	}
	woken(t, b, false)
	woken(t, a, true)
	q.Lost(a)
	if !q.Won(a) {
		t.Error("Won says that no waiter is left")
	}
	q.Wake("k")
	woken(t, b, true)
}

// A waiter may bid on its own account too, as one does that looks for a team to join. A signal that
// comes meanwhile is not lost, and the next one does not wait for it to be read.
func TestASignalThatComesDuringABidOfTheWaitersOwnIsKept(t *testing.T) {
	q := newLocalQueues[int, int]()
	a := join(t, q, 1, true)
	q.Lost(a)
	q.Wake("k") // while it bids
	q.Lost(a)
	done := make(chan struct{})
	go func() { q.Wake("k"); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("Wake waits for a signal to be read, with all queues locked")
	}
	woken(t, a, true)
	q.Lost(a)
	woken(t, a, true) // for the second Wake, which came during a bid too
	q.Lost(a)
	woken(t, a, false)
}

// A waiter that only bids is woken at the head of the queue. The key is neither handed to it nor
// past it.
func TestAKeyIsNeverHandedToAWaiterThatOnlyBids(t *testing.T) {
	q := newLocalQueues[int, int]()
	a, first := q.Join("k", 1, false, true)
	b := join(t, q, 2, false)
	q.Lost(a)
	if w := q.Claim("k"); !first || w != nil {
		t.Fatalf("first: %t; claimed %+v", first, w)
	}
	q.Wake("k")
	woken(t, a, true)
	q.Leave(a)
	woken(t, b, true)
	q.Lost(b)
	if w := q.Claim("k"); w != b {
		t.Errorf("claimed %+v", w)
	}
}

// A call that comes while the head asks the database may be about what happened after it was
// answered.
func TestASignalDuringABidIsNotLost(t *testing.T) {
	q := newLocalQueues[int, int]()
	a := join(t, q, 1, true)
	q.Wake("k")
	q.Wake("k")
	woken(t, a, false)
	q.Lost(a)
	woken(t, a, true)
	q.Lost(a)
	woken(t, a, false)
}

// A reader bids of its own accord too. A signal that comes meanwhile stays: the next one must not
// wait for room, with all queues locked.
func TestABidOfOnesOwnAccordKeepsTheSignal(t *testing.T) {
	q := newLocalQueues[int, int]()
	a, b := join(t, q, 1, true), join(t, q, 2, false)
	q.Lost(a)
	for range 3 {
		q.Wake("k") // and a, which has not seen it, bids and loses
		done := make(chan struct{})
		go func() {
			defer close(done)
			q.Lost(a)
			q.Wake("k")
			q.Lost(a)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the queues stand still")
		}
		woken(t, a, true)
		woken(t, b, false)
		q.Lost(a) // after the bid that the signal was for: it came again meanwhile
		woken(t, a, true)
		q.Lost(a)
		woken(t, a, false)
	}
	q.Wake("k")
	q.Leave(a)
	woken(t, b, true)
}

// Nor is one whose waiter leaves instead of bidding.
func TestASignalIsPassedOnByAWaiterThatLeaves(t *testing.T) {
	q := newLocalQueues[int, int]()
	a, b, c := join(t, q, 1, true), join(t, q, 2, false), join(t, q, 3, false)
	q.Leave(b)
	woken(t, c, false)
	q.Leave(a)
	woken(t, c, true)
}

func TestAClaimedWaiterIsGivenTheKeyOrReturns(t *testing.T) {
	q := newLocalQueues[int, int]()
	a, b := join(t, q, 1, true), join(t, q, 2, false)
	if q.Claim("k") != nil {
		t.Error("claimed while it bids: it could be granted the key twice")
	}
	q.Lost(a)
	if q.Claim("k") != a {
		t.Fatal("not the head")
	}
	q.Return(a)
	woken(t, a, true)
	q.Lost(a)
	q.Claim("k")
	if !q.Give(a, 7) {
		t.Fatal("it has not gone")
	}
	if signal := <-a.Signal; !signal.Given || signal.Grant != 7 {
		t.Errorf("got %+v", signal)
	}
	if q.Claim("k") != b || q.Len("k") != 0 {
		t.Error("the next is not next")
	}
	q.Leave(b)
	if q.Give(b, 8) {
		t.Error("given to one who has gone")
	}
}

// What is given at the very moment of leaving is not lost either.
func TestLeavingSaysWhatWasGiven(t *testing.T) {
	q := newLocalQueues[int, int]()
	a := join(t, q, 1, true)
	q.Lost(a)
	q.Give(q.Claim("k"), 7)
	if signal := q.Leave(a); !signal.Given || signal.Grant != 7 {
		t.Errorf("got %+v", signal)
	}
}

func TestAHeldQueueIsNotWoken(t *testing.T) {
	q := newLocalQueues[int, int]()
	a := join(t, q, 1, true)
	q.Lost(a)
	q.Hold("k")
	q.Wake("k")
	woken(t, a, false)
	if q.Claim("k") != nil {
		t.Error("claimed from a held line")
	}
	q.Resume("k")
	woken(t, a, true)
}

// One key, many goroutines that wait, leave, bid and hand over, at random: at most one has it, and
// no waiter waits for ever.
func TestNoWaiterIsForgotten(t *testing.T) {
	q := newLocalQueues[int, int]()
	var held atomic.Bool // the database's row
	var served, left atomic.Int64
	var wg sync.WaitGroup
	release := func() {
		if w := q.Claim("k"); w != nil { // the row goes straight on
			if q.Give(w, 1) {
				return
			}
		}
		held.Store(false)
		q.Wake("k")
	}
	use := func() { served.Add(1); release() }
	for n := range 16 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for range 2000 {
				w, bid := q.Join("k", n, false, false)
				for {
					if bid {
						if held.CompareAndSwap(false, true) {
							q.Won(w)
							use()
							break
						}
						q.Lost(w)
					}
					patience, short := time.NewTimer(20*time.Second), rng.IntN(8) == 0
					if short {
						patience.Reset(time.Duration(rng.IntN(50)) * time.Microsecond)
					}
					select {
					case signal := <-w.Signal:
						if signal.Given {
							use()
						}
						bid = !signal.Given
					case <-patience.C:
						if !short {
							t.Error("forgotten")
						}
						if signal := q.Leave(w); signal.Given {
							use()
						}
						left.Add(1)
						bid = false
						w = nil
					}
					if w == nil || !bid {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if held.Load() || q.Len("k") != 0 {
		t.Errorf("the row is held: %t; %d wait", held.Load(), q.Len("k"))
	}
	t.Logf("%d were served, %d left", served.Load(), left.Load())
}
