package waitq_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

type (
	lines  = waitq.Lines[int, int]
	waiter = waitq.Waiter[int, int]
)

func join(t *testing.T, q *lines, n int, first bool) *waiter {
	t.Helper()
	w, got := q.Join("k", n, false)
	if got != first {
		t.Fatalf("waiter %d is first: %t", n, got)
	}
	return w
}

func called(t *testing.T, w *waiter, want bool) {
	t.Helper()
	select {
	case turn := <-w.Turn:
		if !want || turn.Given {
			t.Errorf("waiter %d was called: %+v", w.Want, turn)
		}
	default:
		if want {
			t.Errorf("waiter %d was not called", w.Want)
		}
	}
}

func TestOnlyTheHeadIsCalled(t *testing.T) {
	q := waitq.New[int, int]()
	a, b := join(t, q, 1, true), join(t, q, 2, false)
	q.Stay(a)
	if !q.Call("k") || q.Call("other") {
		t.Error("Call does not know who waits")
	}
	called(t, b, false)
	called(t, a, true)
	q.Stay(a)
	if !q.Got(a) {
		t.Error("nobody is left")
	}
	q.Call("k")
	called(t, b, true)
}

// Who only bids is called in his turn, and nothing is handed to him, nor past him to who stands behind.
func TestNothingIsHandedToWhoOnlyBids(t *testing.T) {
	q := waitq.New[int, int]()
	a, first := q.JoinToBid("k", 1, false)
	b := join(t, q, 2, false)
	q.Stay(a)
	if w := q.Claim("k"); !first || w != nil {
		t.Fatalf("first: %t; claimed %+v", first, w)
	}
	q.Call("k")
	called(t, a, true)
	q.Leave(a)
	called(t, b, true)
	q.Stay(b)
	if w := q.Claim("k"); w != b {
		t.Errorf("claimed %+v", w)
	}
}

// A call that comes while the head asks the database may be about what happened after it was answered.
func TestACallDuringABidIsNotLost(t *testing.T) {
	q := waitq.New[int, int]()
	a := join(t, q, 1, true)
	q.Call("k")
	q.Call("k")
	called(t, a, false)
	q.Stay(a)
	called(t, a, true)
	q.Stay(a)
	called(t, a, false)
}

// Nor is one whose waiter leaves instead of bidding.
func TestACallIsPassedOnByWhoLeaves(t *testing.T) {
	q := waitq.New[int, int]()
	a, b, c := join(t, q, 1, true), join(t, q, 2, false), join(t, q, 3, false)
	q.Leave(b)
	called(t, c, false)
	q.Leave(a)
	called(t, c, true)
}

func TestAClaimedWaiterIsGivenTheKeyOrReturns(t *testing.T) {
	q := waitq.New[int, int]()
	a, b := join(t, q, 1, true), join(t, q, 2, false)
	if q.Claim("k") != nil {
		t.Error("claimed while it bids: it could be granted the key twice")
	}
	q.Stay(a)
	if q.Claim("k") != a {
		t.Fatal("not the head")
	}
	q.Return(a)
	called(t, a, true)
	q.Stay(a)
	q.Claim("k")
	if !q.Give(a, 7) {
		t.Fatal("it has not gone")
	}
	if turn := <-a.Turn; !turn.Given || turn.Grant != 7 {
		t.Errorf("got %+v", turn)
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
	q := waitq.New[int, int]()
	a := join(t, q, 1, true)
	q.Stay(a)
	q.Give(q.Claim("k"), 7)
	if turn := q.Leave(a); !turn.Given || turn.Grant != 7 {
		t.Errorf("got %+v", turn)
	}
}

func TestAHeldLineIsNotCalled(t *testing.T) {
	q := waitq.New[int, int]()
	a := join(t, q, 1, true)
	q.Stay(a)
	q.Hold("k")
	q.Call("k")
	called(t, a, false)
	if q.Claim("k") != nil {
		t.Error("claimed from a held line")
	}
	q.Resume("k")
	called(t, a, true)
}

// One key, many goroutines that wait, leave, bid and hand over, at random: at most one has it, and nobody waits for ever.
func TestNobodyIsForgotten(t *testing.T) {
	q := waitq.New[int, int]()
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
		q.Call("k")
	}
	use := func() { served.Add(1); release() }
	for n := range 16 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for range 2000 {
				w, bid := q.Join("k", n, false)
				for {
					if bid {
						if held.CompareAndSwap(false, true) {
							q.Got(w)
							use()
							break
						}
						q.Stay(w)
					}
					patience, short := time.NewTimer(20*time.Second), rng.IntN(8) == 0
					if short {
						patience.Reset(time.Duration(rng.IntN(50)) * time.Microsecond)
					}
					select {
					case turn := <-w.Turn:
						if turn.Given {
							use()
						}
						bid = !turn.Given
					case <-patience.C:
						if !short {
							t.Error("forgotten")
						}
						if turn := q.Leave(w); turn.Given {
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
