package clienttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/memstore"
)

// Callers of two processes lock one key, any of some, or all of some, in a random order. Some give
// up. No key has two holders, none of any keeps a second key, and no call waits long for a key that
// is free: after a minute without a release every call has ended or its keys are held.
func TestAnyInRandomSchedules(t *testing.T) {
	inSchedules(t, race.Few(3, 25), anySchedule)
}

// inSchedules runs f in bubbles, with as many seeds for each way to wait.
func inSchedules(t *testing.T, seeds int, f func(t *testing.T, cfg rowlock.Config, seed uint64)) {
	for _, cfg := range []rowlock.Config{
		{Hints: rowlock.HintsOn}, {Hints: rowlock.HintsOff}, {Hints: rowlock.HintsOn, HandOvers: 1}, {Fair: true},
	} {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprintf("hints %d, fair %t, %d hand-overs/%d", cfg.Hints, cfg.Fair, cfg.HandOvers, seed),
				func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { f(t, cfg, seed) })
				})
		}
	}
}

func anySchedule(t *testing.T, cfg rowlock.Config, seed uint64) {
	s := memstore.New()
	cfg.Reaper.Off = true
	clients := make([]*rowlock.Client, 2)
	for i := range clients {
		own := cfg
		clients[i] = Client(t, s, &own)
	}
	held := &holders{by: make(map[string]int)}
	var all sync.WaitGroup
	for caller := range 12 {
		rng := rand.New(rand.NewPCG(seed, uint64(caller)))
		all.Go(func() {
			for range 12 {
				held.visit(t, clients[caller%2], caller, rng)
				time.Sleep(UpTo(rng, 20*time.Millisecond))
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Minute): // 144 visits of 30 ms, and polls between them
		t.Fatal("a call waits for keys that are free")
	}
	if got := heldKeys(t, s); got != "" {
		t.Errorf("%q are held in the end", got)
	}
}

type holders struct {
	mu sync.Mutex
	by map[string]int
}

// visit is one call and what it does with its keys.
func (h *holders) visit(t *testing.T, c *rowlock.Client, caller int, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	patient := rng.IntN(4) > 0
	if !patient {
		ctx, cancel = context.WithTimeout(ctx, UpTo(rng, 30*time.Millisecond))
		defer cancel()
	}
	var keys []string
	for _, i := range rng.Perm(len(letters))[:1+rng.IntN(3)] {
		keys = append(keys, letters[i])
	}
	var unlock func(context.Context) error
	var err error
	if rng.IntN(5) == 0 {
		var l *rowlock.Locks
		if l, err = c.LockAll(ctx, keys); err == nil {
			keys, unlock = l.Keys(), l.Unlock
		}
	} else {
		var l *rowlock.Lock
		if l, err = c.LockAny(ctx, keys); err == nil {
			keys, unlock = []string{l.Key()}, l.Unlock
		}
	}
	if err != nil {
		if patient || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caller %d: %v", caller, err)
		}
		return
	}
	h.enter(t, keys, caller)
	time.Sleep(UpTo(rng, 30*time.Millisecond))
	h.leave(keys)
	if err := unlock(t.Context()); err != nil {
		t.Errorf("unlock %q: %v", keys, err)
	}
}

func (h *holders) enter(t *testing.T, keys []string, caller int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		if other, two := h.by[key]; two {
			t.Errorf("%q has two holders: callers %d and %d", key, other, caller)
		}
		h.by[key] = caller
	}
}

func (h *holders) leave(keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		delete(h.by, key)
	}
}
