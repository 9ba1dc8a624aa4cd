package clienttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// Calls of every kind with options of every kind, by callers of up to three clients on a bad
// network: no caller holds a key beside another unless both share it, tokens grow, and a lock is
// returned or an error. Twenty seconds after the last Unlock, whatever it has returned, all keys
// are free, long before their leases end, and no quota counts anything.
func TestCallsOfEveryKindOnABadNetwork(t *testing.T) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair %t", fair), func(t *testing.T) {
			ManySchedules(t, 10, func(t *testing.T, rng *rand.Rand) int { return everyCallOnABadWay(t, rng, fair) })
		})
	}
}

func everyCallOnABadWay(t *testing.T, rng *rand.Rand, fair bool) (granted int) {
	store := memstore.New()
	var ways []*BadWay
	var clients []*rowlock.Client
	var books []*Books
	for range 1 + rng.IntN(3) {
		books = append(books, &Books{})
		way := NewBadWay(store, rng.Uint64())
		cfg := &rowlock.Config{
			Fair: fair, TTL: TTL, Reaper: reaping(rng),
			Hints: []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff}[rng.IntN(2)], HandOvers: rng.IntN(4),
			Hooks: books[len(books)-1].Hooks(),
		}
		ways, clients = append(ways, way), append(clients, Client(t, way, cfg))
	}
	of := rowlock.Quota{Held: 1 + rng.IntN(4), Waiting: 1 + rng.IntN(4)}
	if rng.IntN(3) > 0 {
		of = rowlock.Quota{}
	}
	for i, c := range clients {
		var err error
		if clients[i], err = c.Namespace("tenant", of); err != nil {
			t.Fatal(err)
		}
	}
	seen := watchAll(t, clients[0])
	p := &EveryCall{TB: t, Keys: letters, Hold: 4 * time.Second, Lease: 3 * time.Second}
	p.Play(clients, 2+rng.IntN(6), rng, 2*time.Minute)
	for _, way := range ways {
		way.CalmDown()
	}
	time.Sleep(20 * time.Second)
	for key, e := range seen() {
		if e.Kind == rowlock.EventGranted {
			t.Errorf("%q is free, and was last seen granted: %+v", key, e)
		}
	}
	records, err := clients[0].Inspect(t.Context(), lease.Filter{Held: true})
	if err != nil || len(records) > 0 {
		t.Errorf("20 s after the last Unlock are held: %+v, %v", records, err)
	}
	for i, c := range clients {
		books[i].Close(t, c)
		wholeQuota(t, c, of)
	}
	return p.Granted()
}

// reaping is a reaper that removes what is dead at once, or none.
func reaping(rng *rand.Rand) rowlock.ReaperConfig {
	if rng.IntN(2) == 0 {
		return rowlock.ReaperConfig{Off: true}
	}
	return rowlock.ReaperConfig{Every: time.Second, Retention: 1, Pause: -1}
}

// watchAll watches all keys, whose tokens do not shrink. Its result ends it, and returns the last
// event of each.
func watchAll(t *testing.T, c *rowlock.Client) (end func() map[string]rowlock.Event) {
	ctx, stop := context.WithCancel(t.Context())
	last, tokens := make(map[string]rowlock.Event), make(map[string]rowlock.Token)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range c.Watch(ctx, "") {
			if err != nil {
				continue
			}
			//rowlockvet:ignore it looks for a broken promise, and protects nothing
			if e.Kind == rowlock.EventGranted && e.Token < tokens[e.Key] {
				t.Errorf("%q was seen granted with token %d after %d", e.Key, e.Token, tokens[e.Key])
			}
			last[e.Key], tokens[e.Key] = e, e.Token
		}
	}()
	return func() map[string]rowlock.Event {
		stop()
		<-ended
		return last
	}
}

// wholeQuota has a client use its quota up. Nothing that is over counts.
func wholeQuota(t *testing.T, c *rowlock.Client, of rowlock.Quota) {
	t.Helper()
	for n := range of.Held {
		l, err := c.Lock(t.Context(), letters[n]) //rowlockvet:ignore no other call is left
		if err != nil {
			t.Fatalf("lock %d of %+v: %v", n, of, err)
		}
		defer Unlock(t, l)
	}
}

// The same while clients are closed, and an operator takes keys from their holders. Where Close has
// failed, which it says, a key may be locked until its lease ends.
func TestCallsOfEveryKindWhileClientsClose(t *testing.T) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair %t", fair), func(t *testing.T) {
			failed := 0
			ManySchedules(t, 10, func(t *testing.T, rng *rand.Rand) int {
				granted, failures := everyCallWhileClientsClose(t, rng, fair)
				failed += failures
				return granted
			})
			t.Logf("%d times Close has failed", failed)
		})
	}
}

func everyCallWhileClientsClose(t *testing.T, rng *rand.Rand, fair bool) (granted, failed int) {
	store := memstore.New()
	var ways []*BadWay
	open := func(c *rowlock.Config) *rowlock.Client {
		way := NewBadWay(store, rng.Uint64())
		ways = append(ways, way)
		return Client(t, way, c)
	}
	var clients []*rowlock.Client
	for range 1 + rng.IntN(3) {
		clients = append(clients, open(&rowlock.Config{
			Fair: fair, TTL: TTL, Reaper: reaping(rng),
			Hints: []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff}[rng.IntN(2)], HandOvers: rng.IntN(4),
		}))
	}
	operator := open(&rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
	p := &EveryCall{TB: t, Keys: letters, Hold: 4 * time.Second, Lease: 3 * time.Second}
	const d = 2 * time.Minute
	closed := CloseSome(clients, rng, d)
	var others sync.WaitGroup
	seed := rng.Uint64()
	others.Go(func() {
		mine := rand.New(rand.NewPCG(seed, 1))
		for end := time.Now().Add(d); time.Now().Before(end); {
			time.Sleep(UpTo(mine, 20*time.Second))
			_ = p.Force(t.Context(), operator, mine)
		}
	})
	p.Play(clients, 2+rng.IntN(6), rng, d)
	for _, way := range ways {
		way.CalmDown()
	}
	others.Wait()
	if closed() != nil {
		failed++
	}
	time.Sleep(20 * time.Second)
	if got := heldKeys(t, store); got != "" && failed == 0 {
		t.Errorf("%q are locked 20 s after the last Unlock", got)
	}
	return p.Granted(), failed
}
