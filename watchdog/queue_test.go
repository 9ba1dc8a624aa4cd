package watchdog

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestTheQueueHasTheNextEventFirst(t *testing.T) {
	for range 200 {
		var q queue
		var in []*Held
		for range 200 {
			n := rand.IntN(len(in) + 1)
			switch {
			case n == len(in) || len(in) < 3:
				h := &Held{at: rand.N(50 * time.Nanosecond)}
				q.put(h)
				in = append(in, h)
			case rand.IntN(2) == 0:
				in[n].at = rand.N(50 * time.Nanosecond)
				q.put(in[n])
			default:
				in[n].at = rand.N(50 * time.Nanosecond) // as of one that was advanced, and is dropped
				q.remove(in[n])
				if in[n].watched() {
					t.Fatal("a lease that was removed counts as watched")
				}
				in = slices.Delete(in, n, n+1)
			}
			if len(q) != len(in) {
				t.Fatalf("%d in the queue, want %d", len(q), len(in))
			}
			for i, h := range q {
				if h.place != int32(i+1) || h.at < q[max(0, i-1)/2].at {
					t.Fatalf("%d of %d: place %d, event at %d after %d", i, len(q), h.place, h.at, q[max(0, i-1)/2].at)
				}
			}
		}
	}
}
