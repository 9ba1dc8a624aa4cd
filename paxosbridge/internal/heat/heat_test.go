package heat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/race"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// steady notes a key n times a second for d.
func steady(h *Counters, from time.Time, d time.Duration, key string, n int) time.Time {
	for i := range int(d.Seconds() * float64(n)) {
		h.Note(from.Add(time.Duration(i)*time.Second/time.Duration(n)), key, 1)
	}
	return from.Add(d)
}

func TestARateIsThatOfTheLastSeconds(t *testing.T) {
	h := New(10, noon)
	now := steady(h, noon, 20*time.Second, "k", 500)
	if rate := h.Rate(now, "k"); math.Abs(rate-500) > 10 {
		t.Errorf("rate %.0f after 20 s of 500", rate)
	}
	now = now.Add(halfLife)
	if rate := h.Rate(now, "k"); math.Abs(rate-250) > 10 {
		t.Errorf("rate %.0f after a half-life of rest", rate)
	}
	now = now.Add(10 * halfLife)
	if rate := h.Rate(now, "k"); rate > 1 {
		t.Errorf("rate %.2f after a long rest", rate)
	}
	if rate := h.Rate(now, "never seen"); rate != 0 {
		t.Errorf("rate %g of a key that was never seen", rate)
	}
}

// Weights always grow, but sums must stay exact.
func TestARateIsRightAfterYears(t *testing.T) {
	h := New(10, noon)
	now := noon
	for range 400 {
		now = steady(h, now.Add(17*time.Minute), 10*time.Second, "k", 100)
	}
	now = steady(h, now.Add(3*365*24*time.Hour), 20*time.Second, "k", 100)
	if rate := h.Rate(now, "k"); math.Abs(rate-100) > 3 {
		t.Errorf("rate %.1f, want 100", rate)
	}
}

// Few counters find the few hot keys among a million keys that come once, and take no other for
// hot.
func TestHotKeysAreFoundInBoundedMemory(t *testing.T) {
	race.Skip(t)
	const size, hot = 256, 5
	h := New(size, noon)
	now, rng := noon, rand.New(rand.NewPCG(1, 2))
	for i := range 1_000_000 {
		now = now.Add(20 * time.Microsecond)
		if rng.IntN(10) == 0 {
			h.Note(now, fmt.Sprintf("hot %d", rng.IntN(hot)), 1)
		} else {
			h.Note(now, fmt.Sprintf("once %d", i), 1)
		}
	}
	if len(h.keys) > size || len(h.least) > size {
		t.Fatalf("%d counters, want at most %d", len(h.keys), size)
	}
	var found []string
	for _, w := range h.Above(now, 500) {
		found = append(found, w.Key)
		if w.Rate < 600 || w.Rate > 1300 || w.Rate != h.Rate(now, w.Key) {
			t.Errorf("%q: %.0f a second, want about 1000", w.Key, w.Rate)
		}
	}
	slices.Sort(found)
	if want := []string{"hot 0", "hot 1", "hot 2", "hot 3", "hot 4"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

// Without new events, it is the read that scales the counts.
func TestARateIsSmallAfterAnHourOfRest(t *testing.T) {
	h := New(10, noon)
	now := steady(h, noon, 10*time.Second, "k", 1000)
	for _, w := range h.Above(now.Add(time.Hour), 0) {
		if w.Rate > 1e-3 {
			t.Errorf("rate %g", w.Rate)
		}
	}
}

func BenchmarkNote(b *testing.B) {
	h := New(1024, noon)
	keys := make([]string, 4096)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	now := noon
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Microsecond)
		h.Note(now, keys[i%len(keys)], 1)
	}
}
