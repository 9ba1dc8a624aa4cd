package paxosbridge_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// The whole loop: two processes, one of which makes a key hot, beside many keys that are not.
func TestAHotKeyMovesOutAndBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var moves []string
		cfg := paxosbridge.Config{
			Heat: paxosbridge.Heat{Hot: 100, MinStay: 20 * time.Second}, Every: time.Second,
			Hooks: paxosbridge.Hooks{Moved: func(key string, placement int, epoch int64, _ string) {
				mu.Lock()
				defer mu.Unlock()
				moves = append(moves, fmt.Sprint(key, " to ", placement, " in ", epoch))
			}},
		}
		r := newRig(t, cfg)
		other := r.bridge(t, cfg)
		var clients []*rowlock.Client
		for _, b := range []*paxosbridge.Bridge{r.Bridge, other} {
			c, err := rowlock.New(b, nil)
			r.must(err)
			clients = append(clients, c)
		}
		ctx, cool := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		sum, pairs := 0, 0
		for w := range 6 {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					key := fmt.Sprint("cold ", n%1000)
					if w < 4 {
						key = "hot"
					}
					_ = clients[w/3].Do(
						context.Background(), key,
						func(context.Context, *rowlock.Lock) error {
							if key == "hot" {
								sum++
								time.Sleep(time.Millisecond)
							}
							return nil
						},
					)
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		time.Sleep(30 * time.Second)
		if row := r.row("hot"); row.Placement != 1 {
			t.Errorf("after 30 s of heat the row is %+v", row)
		}
		cool()
		wg.Wait()
		pairs = sum
		time.Sleep(60 * time.Second)
		if row := r.row("hot"); row.Placement != lease.PlacementTable || lease.Epoch(row.Token) != 2 {
			t.Errorf("after a minute of rest the row is %+v", row)
		}
		// Both processes may have helped with one move, and tell of it.
		if slices.Sort(moves); len(slices.Compact(slices.Clone(moves))) != 2 {
			t.Errorf("moves: %q", moves)
		}
		t.Logf("%d pairs of the hot key; %q", pairs, moves)
		for i, c := range clients {
			r.must(c.Close())
			_ = []*paxosbridge.Bridge{r.Bridge, other}[i].Close()
		}
	})
}
