package latch_test

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
)

// This file is the model of a latch for porcupine, and random histories that are compared with it.

const modelParties = 3

type deed struct {
	verb       string
	generation int64
	party      int
	lossy      bool // answers are lost: a call that is stale may have counted before the reset
}

type said struct {
	stale, unknown bool
	number         int64 // Open: the generation; Count: what lacks; Await: 1 is open
}

type latchState struct {
	generation int64
	counted    uint8
	opened     uint64 // a bit for each earlier generation that was open when it was reset
}

func (s latchState) lacks() int64 { return int64(max(0, modelParties-bits.OnesCount8(s.counted))) }

// after returns the states that the answer to a deed allows.
func (s latchState) after(d deed, r said) []latchState {
	now, same := d.generation == s.generation, []latchState{s}
	with, reset := s, latchState{generation: d.generation + 1, opened: s.opened}
	if s.lacks() == 0 {
		reset.opened |= 1 << s.generation
	}
	with.counted |= 1 << d.party
	switch {
	case d.verb == "open":
		return only(same, r.number == s.generation)
	case d.verb == "count down" && r.unknown && now:
		return []latchState{s, with}
	case d.verb == "reset" && (r.unknown || r.stale) && now:
		return []latchState{s, reset}[b2i(r.stale):] // stale: another reset has followed its own
	case r.unknown:
		return same
	case d.verb == "count down" && r.stale && now:
		return only([]latchState{with}, d.lossy)
	case r.stale:
		return only(same, d.generation < s.generation-int64(b2i(d.verb == "reset")))
	case d.verb == "count down":
		return only([]latchState{with}, now)
	case d.verb == "count":
		return only(same, now && r.number == s.lacks())
	case d.verb == "await": // of what a process has seen open it may say so, also after its reset
		return only(same, now && s.lacks() == 0 || s.opened&(1<<d.generation) != 0)
	case d.verb == "reset" && now:
		return []latchState{reset}
	}
	return only(same, s.generation == d.generation+1) // reset already
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func only(states []latchState, allowed bool) []latchState {
	if allowed {
		return states
	}
	return nil
}

func model() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init:  func() []any { return []any{latchState{generation: 1}} },
		Equal: func(a, b any) bool { return a == b },
		Step: func(state, in, out any) (next []any) {
			for _, s := range state.(latchState).after(in.(deed), out.(said)) {
				next = append(next, s)
			}
			return next
		},
	}).ToModel()
}

// history records what clients do and are told.
type history struct {
	mu    sync.Mutex
	begin time.Time
	lossy bool
	ops   []porcupine.Operation
	stray []error
}

func (h *history) do(client int, d deed, f func() (int64, error)) (int64, error) {
	d.lossy = h.lossy
	call := time.Since(h.begin).Nanoseconds()
	number, err := f()
	op := porcupine.Operation{ClientId: client, Input: d, Call: call, Return: time.Since(h.begin).Nanoseconds()}
	out := said{stale: errors.Is(err, latch.ErrStale), unknown: errors.Is(err, lease.ErrUnknown), number: number}
	if out.unknown {
		op.Return = math.MaxInt64
	}
	op.Output = out
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil && errors.Is(err, context.DeadlineExceeded) && !out.unknown: // says nothing
	case err != nil && !out.stale && !out.unknown:
		h.stray = append(h.stray, err)
	default:
		h.ops = append(h.ops, op)
	}
	return number, err
}

// client does random deeds.
func (h *history) client(ctx context.Context, id, deeds int, s *latch.Latches, rnd *rand.Rand) {
	var l *latch.Latch
	for range deeds {
		if l == nil || rnd.IntN(12) == 0 {
			_, err := h.do(id, deed{verb: "open"}, func() (n int64, err error) {
				if l, err = s.Open(ctx, "l", modelParties); err == nil {
					n = l.Generation()
				}
				return n, err
			})
			if err != nil {
				l = nil
			}
			continue
		}
		var err error
		d := deed{verb: "count down", generation: l.Generation(), party: rnd.IntN(4)}
		switch n := rnd.IntN(12); {
		case n < 6:
			_, err = h.do(id, d, func() (int64, error) { return 0, l.CountDown(ctx, string(rune('a'+d.party))) })
		case n < 9:
			d.verb = "count"
			_, err = h.do(id, d, func() (int64, error) { n, err := l.Count(ctx); return int64(n), err })
		case n < 11:
			d.verb = "await"
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			_, err = h.do(id, d, func() (int64, error) { return 1, l.Await(short) })
			cancel()
		default:
			d.verb = "reset"
			_, err = h.do(id, d, func() (int64, error) {
				next, err := l.Reset(ctx)
				if err == nil {
					l = next
				}
				return 0, err
			})
		}
		if errors.Is(err, latch.ErrStale) && rnd.IntN(2) == 0 {
			l = nil
		}
	}
}

// run has clients of several processes work on one latch, and judges what they were told.
func (h *history) run(t *testing.T, processes []*latch.Latches, deeds int, seed uint64) porcupine.CheckResult {
	h.begin = time.Now()
	var wg sync.WaitGroup
	for id := range 2 * len(processes) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(id)))
			h.client(t.Context(), id, deeds, processes[id/2], rnd)
		})
	}
	wg.Wait()
	return porcupine.CheckOperationsTimeout(model(), h.ops, 2*time.Minute) // on a busy machine too
}

// What parties are told in random histories is what one latch would have told them, one call after
// another, also if answers are lost.
func TestHistoriesAreThoseOfALatch(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		seed := rand.Uint64()
		total := 0
		for round := range uint64(6) {
			db, err := faultdb.Open(r.Driver, r.Source, faultdb.Randomly(0.03*float64(round%2), seed+round, faultdb.LoseReply()))
			ok(t, err)
			cfg := latch.Config{Sweep: -1, Connections: 1, NoHints: true}
			s := []*latch.Latches{r.tryOpen(t, db, cfg), r.process(t), r.process(t)}
			h := &history{lossy: round%2 > 0}
			result := h.run(t, s, 30, seed+round)
			if result != porcupine.Ok || len(h.stray) > 0 {
				t.Errorf("seed %d, round %d: %s; %v", seed, round, result, h.stray)
			}
			total += len(h.ops)
			for _, p := range s {
				ok(t, p.Close())
			}
			ok(t, db.Close())
			r.Exec(t, `DELETE FROM {rowlock_latch}`)
			r.Exec(t, `DELETE FROM {rowlock_party}`)
		}
		t.Logf("%d calls", total)
	})
}
