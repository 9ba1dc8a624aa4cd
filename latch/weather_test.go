package latch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/latch"
)

// Parties whose connections break at any operation meet again and again: no latch opens and no
// barrier lets a party in or out before the last has called, and repeated calls bring each of them
// through every round. ROWLOCK_EVERY_CALL is how many schedules are tried on each database.
func TestPartiesMeetInBadWeather(t *testing.T) {
	servertest.InBadWeather(t, 1, func(t *testing.T, s *servertest.Storm) {
		m := &meetings{T: t, parties: 2 + s.IntN(3), called: make(map[string]*atomic.Int64)}
		var processes []*latch.Latches
		r := rig{s.Env}
		for range 1 + s.IntN(3) {
			processes = append(processes, r.open(t, s.Exposed(t), latch.Config{
				Sweep: -1, Connections: 1 + s.IntN(2), NoHints: s.IntN(2) == 0, Alive: 2 * patience,
			}))
		}
		s.Turn(true)
		fair := time.AfterFunc(4*time.Second, func() { s.Turn(false) })
		defer fair.Stop()
		var all sync.WaitGroup
		for n := range m.parties {
			on, rng := processes[n%len(processes)], s.Branch()
			all.Go(func() { m.attend(on, fmt.Sprint("party ", n), rng) })
		}
		all.Wait()
	})
}

// meetings are what parties do together.
type meetings struct {
	*testing.T
	parties int

	mu     sync.Mutex
	called map[string]*atomic.Int64 // how many parties have begun each step
}

// attend takes part in all of them.
func (m *meetings) attend(on *latch.Latches, party string, rng *rand.Rand) {
	var b *latch.Barrier
	m.repeated("open barrier", rng, func(ctx context.Context) (err error) {
		b, err = on.Barrier(ctx, "b", m.parties)
		return err
	})
	for round := range 3 {
		name := fmt.Sprint("latch ", round)
		var l *latch.Latch
		m.repeated("open "+name, rng, func(ctx context.Context) (err error) {
			l, err = on.Open(ctx, name, m.parties)
			return err
		})
		m.begins(name)
		m.repeated("count down "+name, rng, func(ctx context.Context) error { return l.CountDown(ctx, party) })
		m.repeated("await "+name, rng, l.Await)
		m.complete(name)
		m.together(fmt.Sprint("enter ", round), rng, func(ctx context.Context) error { return b.Enter(ctx, party) })
		m.together(fmt.Sprint("leave ", round), rng, func(ctx context.Context) error { return b.Leave(ctx, party) })
	}
}

// together makes a call that returns when all parties have made it.
func (m *meetings) together(step string, rng *rand.Rand, f func(context.Context) error) {
	m.begins(step)
	m.repeated(step, rng, f)
	m.complete(step)
}

func (m *meetings) count(step string) *atomic.Int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.called[step] == nil {
		m.called[step] = &atomic.Int64{}
	}
	return m.called[step]
}

func (m *meetings) begins(step string) { m.count(step).Add(1) }

func (m *meetings) complete(step string) {
	if n := m.count(step).Load(); n < int64(m.parties) {
		m.Errorf("%s is over for one, and %d of %d have begun it", step, n, m.parties)
	}
}

// repeated makes a call until it succeeds. Its errors are those of the weather.
func (m *meetings) repeated(what string, rng *rand.Rand, f func(context.Context) error) {
	for end := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(m.T.Context(), time.Duration(rng.Int64N(int64(3*time.Second))))
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		for _, ends := range []error{
			latch.ErrBroken, latch.ErrStale, latch.ErrFull, latch.ErrNotEntered, latch.ErrNotFound, latch.ErrParties,
		} {
			if errors.Is(err, ends) {
				m.Errorf("%s: %v", what, err)
				return
			}
		}
		if time.Now().After(end) {
			m.Errorf("%s: not after %v: %v", what, patience, err)
			return
		}
	}
}
