package clienttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/semaphore"
)

// Callers of two processes lock keys exclusively and shared, and permits, in random mixtures and in
// any order, beside callers that lock one kind alone. Some give up. What is held at each moment is
// what the model of readers, writers and permits allows; no two calls keep each other waiting, and
// nothing is left in the end.
func TestEachInRandomSchedules(t *testing.T) {
	inSchedules(t, race.Few(2, 15), eachSchedule)
}

func eachSchedule(t *testing.T, cfg rowlock.Config, seed uint64) {
	s := memstore.New()
	cfg.Reaper.Off = true
	m := &mixture{writers: make(map[string]int), readers: make(map[string]int), limit: 3}
	for range 2 {
		own := cfg
		c := Client(t, s, &own)
		m.clients, m.sems = append(m.clients, c), append(m.sems, reports(t, c, 3))
	}
	var all sync.WaitGroup
	for caller := range 10 {
		rng := rand.New(rand.NewPCG(seed, uint64(caller)))
		all.Go(func() {
			for range 10 {
				m.visit(t, caller%2, rng)
				time.Sleep(upTo(rng, 20*time.Millisecond))
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		t.Fatal("a call waits for what is free")
	}
	time.Sleep(10 * time.Second) // what was cut short is cleaned up
	wantState(t, s, "")
	if m.granted < 30 {
		t.Errorf("%d calls were granted: this shows nothing", m.granted)
	}
}

// mixture is the model: what is held, as its holders know it.
type mixture struct {
	clients []*rowlock.Client
	sems    []*semaphore.Semaphore
	limit   int

	mu               sync.Mutex
	writers, readers map[string]int
	permits, granted int
}

// wish is what one visit asks for.
type wish struct {
	alone, shared []string
	n             int
}

func (w wish) parts(sem *semaphore.Semaphore, rng *rand.Rand) []rowlock.Part {
	parts := []rowlock.Part{rowlock.Exclusive(w.alone...), rowlock.Shared(w.shared...)}
	if w.n > 0 {
		parts = append(parts, sem.Permits(w.n))
	}
	rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return parts
}

func randomWish(rng *rand.Rand) (w wish) {
	for _, i := range rng.Perm(len(letters))[:1+rng.IntN(3)] {
		if rng.IntN(2) == 0 {
			w.alone = append(w.alone, letters[i])
		} else {
			w.shared = append(w.shared, letters[i])
		}
	}
	w.n = rng.IntN(3)
	return w
}

func (m *mixture) visit(t *testing.T, client int, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	patient := rng.IntN(4) > 0
	if !patient {
		ctx, cancel = context.WithTimeout(ctx, upTo(rng, 30*time.Millisecond))
		defer cancel()
	}
	w, lock := randomWish(rng), m.clients[client].LockEach
	if rng.IntN(4) == 0 {
		patient, lock = false, m.clients[client].TryLockEach
	}
	l, err := lock(ctx, w.parts(m.sems[client], rng))
	if err != nil {
		if patient || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, rowlock.ErrHeld) {
			t.Errorf("%+v: %v", w, err)
		}
		return
	}
	if want := len(w.alone) + len(w.shared) + w.n; len(l.Keys()) != want {
		t.Errorf("%+v: got %q", w, l.Keys())
	}
	m.enter(t, w)
	time.Sleep(upTo(rng, 30*time.Millisecond))
	m.change(w, -1)
	if err := l.Unlock(t.Context()); err != nil {
		t.Errorf("%+v: unlock: %v", w, err)
	}
}

func (m *mixture) enter(t *testing.T, w wish) {
	m.change(w, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.granted++
	for _, key := range w.alone {
		if m.writers[key] > 1 || m.readers[key] > 0 {
			t.Errorf("%q: %d writers and %d readers", key, m.writers[key], m.readers[key])
		}
	}
	for _, key := range w.shared {
		if m.writers[key] > 0 {
			t.Errorf("%q: a reader beside a writer", key)
		}
	}
	if m.permits > m.limit {
		t.Errorf("%d permits of %d", m.permits, m.limit)
	}
}

func (m *mixture) change(w wish, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range w.alone {
		m.writers[key] += by
	}
	for _, key := range w.shared {
		m.readers[key] += by
	}
	m.permits += by * w.n
}
