package paxosbridge_test

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Calls of every kind by clients over bridges in bad weather, whose keys move all the time. When
// the weather is fair again, all keys are free, wherever they are, long before their leases end.
func TestCallsOfEveryKindWhileKeysMove(t *testing.T) {
	granted, moved, schedules := 0, 0, race.Few(6, 120)
	for range schedules {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, m := everyCall(t, rand.New(rand.NewPCG(seed, 41)))
				granted, moved = granted+g, moved+m
			})
		})
	}
	if granted < 5*schedules || moved < 2*schedules {
		t.Errorf("%d grants and %d moves in %d schedules: they prove little", granted, moved, schedules)
	}
}

func everyCall(t *testing.T, rng *rand.Rand) (granted, moved int) {
	w := &weather{rand: rng, bad: []int{5, 15, 30}[rng.IntN(3)]}
	s := &schedule{t: t, w: w, table: table{memstore.New()}, cluster: memcluster.New()}
	w.fair.Store(true)
	var clients []*rowlock.Client
	for range 3 {
		b, err := paxosbridge.New(
			t.Context(), stormyTable{s.table, w}, stormyCluster{s.cluster, w}, &paxosbridge.Config{
				Every: -1, Refresh: 3 * time.Second, MoveTimeout: 3 * time.Second,
				Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		s.bridges = append(s.bridges, b)
		clients = append(clients, clienttest.Client(t, b, &rowlock.Config{
			TTL: 30 * time.Second, Reaper: rowlock.ReaperConfig{Off: true},
		}))
	}
	w.fair.Store(false)
	p := &clienttest.EveryCall{
		TB: t, Keys: []string{"k0", "k1"}, Hold: 2 * time.Second, Lease: 10 * time.Second,
	}
	var movers sync.WaitGroup
	for _, b := range s.bridges {
		movers.Go(func() {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); {
				s.mover(b)
			}
		})
	}
	closed := clienttest.CloseSome(clients[:2], rand.New(rand.NewPCG(2, uint64(w.dice(1<<30)))), 2*time.Minute)
	p.Play(clients[:2], 2+w.dice(4), rand.New(rand.NewPCG(1, uint64(w.dice(1<<30)))), time.Minute)
	movers.Wait()
	w.fair.Store(true)
	failed := closed()
	time.Sleep(longest + 20*time.Second)
	if failed != nil {
		return p.Granted(), s.moves
	}
	for _, key := range p.Keys {
		for _, c := range clients[2:] {
			clienttest.Unlock(t, clienttest.Take(t, c, key))
		}
	}
	return p.Granted(), s.moves
}
