package paxosbridge_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

var (
	schedules = flag.Int("schedules", 2000, "random schedules to play")
	seedFlag  = flag.Uint64("seed", 0, "play only the schedule of this seed")
)

const termTTL = 2 * time.Second

// term is a lease as its holder knows it: from when until when the holder relied on it.
type term struct {
	key               string
	token             lease.Token
	asked, got, until time.Time
}

// schedule is one run: two processes, each with its bridge, a few clients, and movers, in bad
// weather.
type schedule struct {
	t       *testing.T
	seed    uint64
	w       *weather
	table   table
	cluster *memcluster.Cluster
	bridges []*paxosbridge.Bridge

	mu    sync.Mutex
	terms []term
	moves int
}

// The real code, over stores that lose, delay and repeat calls: one holder at a time and growing
// tokens, whatever moves meanwhile. When the weather is fair again, every key can be locked.
func TestRandomSchedules(t *testing.T) {
	n := *schedules
	if testing.Short() || race.Enabled {
		n /= 10
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	var terms, moves int
	var calls int64
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			s := play(t, seed)
			terms, moves, calls = terms+len(s.terms), moves+s.moves, calls+s.w.calls.Load()
		})
		if t.Failed() {
			t.Fatalf("play it again with -run TestRandomSchedules -seed %d", seed)
		}
	}
	t.Logf("%d schedules: %d terms, %d moves, %d calls", len(seeds), terms, moves, calls)
	if moves < len(seeds)/2 || terms < len(seeds) {
		t.Error("too little has happened to prove anything")
	}
}

func play(t *testing.T, seed uint64) *schedule {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &schedule{
		t: t, seed: seed, table: table{memstore.New()}, cluster: memcluster.New(),
		w: &weather{rand: rng, bad: []int{0, 5, 15, 30}[rng.IntN(4)]},
	}
	for range 2 {
		s.w.fair.Store(true)
		b, err := paxosbridge.New(
			t.Context(), stormyTable{s.table, s.w}, stormyCluster{s.cluster, s.w},
			&paxosbridge.Config{
				Every: -1, Refresh: 3 * time.Second, MoveTimeout: 3 * time.Second,
				Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		s.bridges = append(s.bridges, b)
	}
	s.w.fair.Store(false)
	var wg sync.WaitGroup
	for client := range 3 {
		wg.Go(func() { s.client(s.bridges[client%2]) })
	}
	for _, b := range s.bridges {
		wg.Go(func() { s.mover(b) })
	}
	wg.Wait()
	s.w.fair.Store(true)
	time.Sleep(longest + 20*time.Second) // leases and movers' leases end
	s.settled()
	for _, b := range s.bridges {
		_ = b.Close()
	}
	s.judge()
	return s
}

func (s *schedule) key() string { return fmt.Sprint("k", s.w.dice(2)) }

// client acquires terms, and keeps, renews, releases or forgets them.
func (s *schedule) client(b *paxosbridge.Bridge) {
	for range 8 {
		q := lease.AcquireRequest{Key: s.key(), Owner: lease.NewOwner(), TTL: termTTL}
		asked := time.Now()
		var answer lease.Acquired
		for range 20 {
			answers, err := b.Acquire(context.Background(), []lease.AcquireRequest{q})
			if err == nil {
				answer, err = answers[0], answers[0].Err
			}
			if err == nil && answer.Granted {
				s.hold(
					b, lease.Lease{Key: q.Key, Owner: q.Owner, Token: answer.Token},
					term{q.Key, answer.Token, asked, time.Now(), asked.Add(termTTL)},
				)
				break
			}
			if err != nil && !errors.Is(err, lease.ErrUnknown) && !errors.Is(err, lease.ErrBusy) {
				s.t.Errorf("seed %d: acquire: %v", s.seed, err)
				return
			}
			s.w.pause(300 * time.Millisecond)
		}
		if !answer.Granted {
			_, _ = b.Release(context.Background(), []lease.Lease{{Key: q.Key, Owner: q.Owner}})
		}
		s.w.pause(100 * time.Millisecond)
	}
}

// A lease that was requested several times may be as old as the first request.
//
// hold relies on a term until it is released or over. If the answer came too late, there was no
// term.
func (s *schedule) hold(b *paxosbridge.Bridge, l lease.Lease, t term) {
	defer func() {
		s.mu.Lock()
		s.terms = append(s.terms, t)
		s.mu.Unlock()
	}()
	for range s.w.dice(3) {
		s.w.pause(time.Second)
		sent := time.Now()
		if sent.After(t.until) {
			return
		}
		answers, err := b.Renew(
			context.Background(), []lease.RenewRequest{{Lease: l, TTL: termTTL}},
		)
		if err != nil || answers[0].Err != nil || answers[0].Outcome == lease.Busy {
			continue
		}
		if answers[0].Outcome == lease.Lost {
			if time.Now().Before(t.until) {
				s.t.Errorf(
					"seed %d: %+v was lost %v before its end", s.seed, l, time.Until(t.until),
				)
			}
			return
		}
		// Else the holder's term is over, and another holder may have had the key meanwhile.
		if time.Now().Before(t.until) {
			t.until = sent.Add(termTTL)
		}
	}
	switch s.w.dice(4) {
	case 0: // the holder dies
	default:
		s.w.pause(300 * time.Millisecond)
		if now := time.Now(); now.Before(t.until) {
			t.until = now
		}
		_, _ = b.Release(context.Background(), []lease.Lease{l})
	}
}

func (s *schedule) mover(b *paxosbridge.Bridge) {
	for range 6 {
		s.w.pause(2 * time.Second)
		var err error
		if key := s.key(); s.w.dice(2) == 0 {
			err = b.MoveOut(context.Background(), key, "schedule")
		} else {
			err = b.MoveBack(context.Background(), key, "schedule")
		}
		if err == nil {
			s.mu.Lock()
			s.moves++
			s.mu.Unlock()
		}
	}
}

// settled wants every key to be granted through every bridge.
func (s *schedule) settled() {
	for _, key := range []string{"k0", "k1"} {
		for i, b := range s.bridges {
			q := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: termTTL}
			asked := time.Now()
			answers, err := b.Acquire(context.Background(), []lease.AcquireRequest{q})
			if err != nil || !answers[0].Granted {
				s.t.Errorf(
					"seed %d: %q cannot be had through bridge %d in fair weather: %+v, %v", s.seed,
					key, i, answers, err,
				)
				continue
			}
			s.terms = append(s.terms, term{key, answers[0].Token, asked, time.Now(), time.Now()})
			_, _ = b.Release(
				context.Background(),
				[]lease.Lease{{Key: key, Owner: q.Owner, Token: answers[0].Token}},
			)
		}
	}
}

// rising is porcupine's model of a counter: every token granted is above the last.
var rising = porcupine.Model{
	Init: func() any { return lease.Token(0) },
	Step: func(last, _, token any) (bool, any) { return token.(lease.Token) > last.(lease.Token), token },
}

func (s *schedule) judge() {
	for _, key := range []string{"k0", "k1"} {
		var terms []term
		var history []porcupine.Operation
		for _, t := range s.terms {
			if t.key == key {
				terms = append(terms, t)
				history = append(
					history,
					porcupine.Operation{
						ClientId: len(history), Output: t.token, Call: t.asked.UnixNano(),
						Return: t.got.UnixNano(),
					},
				)
			}
		}
		if !porcupine.CheckOperations(rising, history) {
			s.t.Errorf("seed %d: the tokens of %q do not rise: %+v", s.seed, key, terms)
		}
		slices.SortFunc(terms, func(a, b term) int { return a.got.Compare(b.got) })
		for i := 1; i < len(terms); i++ {
			for _, before := range terms[:i] {
				if terms[i].got.Before(before.until) && terms[i].until.After(terms[i].got) {
					s.t.Errorf(
						"seed %d: two believed to hold %q at once: %+v and %+v", s.seed, key,
						before, terms[i],
					)
				}
			}
		}
	}
}
