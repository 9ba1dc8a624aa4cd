package semaphore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/semaphore"
)

// deed is what a caller does, and whether it was granted. A release and a change are always done.
type deed struct {
	acquire, release, resize int
	granted                  bool
}

// state is how many are held of how many.
type state struct{ held, limit int }

// model is that of a semaphore. An exact one refuses only if too few are free.
func model(limit int, exact bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{0, limit} },
		Step: func(before, _, out any) (bool, any) {
			s, d := before.(state), out.(deed)
			switch {
			case d.resize > 0:
				return true, state{s.held, d.resize}
			case d.release > 0:
				return s.held >= d.release, state{s.held - d.release, s.limit}
			case d.granted:
				return s.held+d.acquire <= s.limit, state{s.held + d.acquire, s.limit}
			}
			return !exact || s.held+d.acquire > s.limit, s
		},
	}
}

// history records what happened.
type history struct {
	mu  sync.Mutex
	ops []porcupine.Operation
}

func (h *history) add(caller int, called time.Time, d deed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: caller, Call: called.UnixNano(), Output: d, Return: time.Now().UnixNano(),
	})
}

func (h *history) judge(t *testing.T, m porcupine.Model) {
	t.Helper()
	grants, changes, refusals := 0, 0, 0
	for _, op := range h.ops {
		switch d := op.Output.(deed); {
		case d.granted:
			grants++
		case d.resize > 0:
			changes++
		case d.acquire > 0:
			refusals++
		}
	}
	if got := porcupine.CheckOperationsTimeout(m, h.ops, time.Minute); got != porcupine.Ok {
		t.Errorf("%s: no order of the %d calls explains their answers", got, len(h.ops))
	}
	t.Logf("%d grants, %d refusals, %d changes", grants, refusals, changes)
	if grants == 0 || refusals == 0 || changes == 0 {
		t.Error("this history shows nothing")
	}
}

// caller takes and gives back permits, changes the limit, and waits now and then.
func (h *history) caller(t *testing.T, id int, s *semaphore.Semaphore, seed uint64, rounds int) {
	random := rand.New(rand.NewPCG(seed, uint64(id)))
	var held []*semaphore.Permit
	release := func(i int) {
		p := held[i]
		held = slices.Delete(held, i, i+1)
		called := time.Now()
		if err := p.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		h.add(id, called, deed{release: len(p.Slots())})
	}
	for range rounds {
		switch n := random.IntN(10); {
		case n == 0:
			limit, called := 2+random.IntN(4), time.Now()
			if err := s.Resize(t.Context(), limit); err != nil {
				t.Errorf("resize: %v", err)
			}
			h.add(id, called, deed{resize: limit})
		case n < 5 && len(held) > 0:
			release(random.IntN(len(held)))
		default:
			if p := h.acquire(t, id, s, 1+random.IntN(2), n == 9 && len(held) == 0); p != nil {
				held = append(held, p)
			}
		}
	}
	for len(held) > 0 {
		release(0)
	}
}

// acquire records nothing of a call that was given up: it has asked several times.
func (h *history) acquire(
	t *testing.T, id int, s *semaphore.Semaphore, n int, wait bool,
) *semaphore.Permit {
	called := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	get := s.TryAcquire
	if wait {
		get = s.Acquire
	}
	p, err := get(ctx, n)
	switch {
	case err == nil:
		h.add(id, called, deed{acquire: n, granted: true})
	case !errors.Is(err, rowlock.ErrHeld):
		t.Errorf("acquire: %v", err)
	case !wait:
		h.add(id, called, deed{acquire: n})
	}
	return p
}

// run has callers of two processes work at a time.
func (h *history) run(t *testing.T, both [2]*semaphore.Semaphore, callers, rounds int) {
	for _, s := range both { // a process whose first call comes after a change is refused
		_, err := s.Limit(t.Context())
		ok(t, err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for id := range callers {
		all.Go(func() { h.caller(t, id, both[id%2], seed, rounds) })
	}
	all.Wait()
}

func TestRandomHistoriesAreThoseOfASemaphore(t *testing.T) {
	for range 5 {
		s := memstore.New()
		var h history
		h.run(t, [2]*semaphore.Semaphore{process(t, s, 3), process(t, s, 3)}, 6, 40)
		h.judge(t, model(3, true))
	}
}

// On a database a refusal may come of two reads, between which another was released and granted.
func TestRandomHistoriesOnADatabaseAreThoseOfASemaphore(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		var both [2]*semaphore.Semaphore
		for i := range both {
			c, err := rowlock.Open(e.Pool(t), e.Dialect, nil)
			ok(t, err)
			t.Cleanup(func() { _ = c.Close() })
			both[i] = of(t, c, 3)
		}
		var h history
		h.run(t, both, 6, 40)
		h.judge(t, model(3, false))
	})
}

// The model refuses what no semaphore does.
func TestTheModelBites(t *testing.T) {
	one := func(from, to int64, d deed) porcupine.Operation {
		return porcupine.Operation{ClientId: int(from), Call: from, Return: to, Output: d}
	}
	grant := func(n int) deed { return deed{acquire: n, granted: true} }
	for name, ops := range map[string][]porcupine.Operation{
		"one too many":          {one(1, 2, grant(2)), one(3, 4, grant(2))},
		"above a smaller limit": {one(1, 2, grant(2)), one(3, 4, deed{resize: 2}), one(5, 6, grant(1))},
		"refused though free":   {one(1, 2, grant(1)), one(3, 4, deed{acquire: 2})},
		"released twice":        {one(1, 2, grant(1)), one(3, 4, deed{release: 1}), one(5, 6, deed{release: 1})},
	} {
		if porcupine.CheckOperations(model(3, true), ops) {
			t.Errorf("%s: the model allows it", name)
		}
	}
}
