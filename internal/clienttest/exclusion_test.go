package clienttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/lossy"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"pgregory.net/rapid"
)

var fates = lossy.Fates(TTL)

// believers are the holders that were granted one key, in the order of the grants.
type believers struct {
	mu    sync.Mutex
	key   string
	last  *rowlock.Lock
	got   int
	wrong []string
}

func (b *believers) add(l *rowlock.Lock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got++
	if last := b.last; last != nil {
		if last.Context().Err() == nil && l.Context().Err() == nil {
			b.wrong = append(b.wrong,
				fmt.Sprintf("%q: with token %d held, token %d was given out", b.key, last.Token(), l.Token()))
		}
		if last.Token() >= l.Token() {
			b.wrong = append(b.wrong, fmt.Sprintf("%q: token %d after %d", b.key, l.Token(), last.Token()))
		}
	}
	b.last = l
}

// Several clients, honest clocks and a network that delays, drops and doubles as it likes: no two
// clients hold a key at once, tokens grow, and in the end no key is left behind.
func TestNoTwoHoldAKeyAtOnce(t *testing.T) {
	got := 0
	race.Checks(t, 8)
	rapid.Check(t, func(rt *rapid.T) {
		clients := rapid.SliceOfN(rapid.SliceOfN(fates, 1, 30), 1, 3).Draw(rt, "fates of each client")
		seed := rapid.Uint64().Draw(rt, "seed")
		var b *believers
		synctest.Test(t, func(t *testing.T) { // in which nothing may fail, or rapid could not shrink
			b = contend(clients, seed)
		})
		got += b.got
		for _, w := range b.wrong {
			rt.Error(w)
		}
	})
	t.Logf("%d locks were given out", got)
}

func contend(clients [][]lossy.Fate, seed uint64) *believers {
	store, b := memstore.New(), &believers{key: "k"}
	var wg sync.WaitGroup
	var all []*rowlock.Client
	end := time.Now().Add(20 * TTL)
	for i, fates := range clients {
		cfg := &rowlock.Config{Logger: slog.New(slog.DiscardHandler)}
		cfg.Reaper.Off = true
		c, err := rowlock.New(lossy.New(store, TTL, fates), cfg)
		if err != nil {
			b.wrong = append(b.wrong, err.Error())
			return b
		}
		for w := range 2 {
			random := rand.New(rand.NewPCG(seed, uint64(i*2+w)))
			wg.Go(func() {
				for time.Now().Before(end) {
					work(c, b, random)
				}
			})
		}
		all = append(all, c)
	}
	wg.Wait()
	for _, c := range all {
		_ = c.Close()
	}
	time.Sleep(3 * TTL) // for what is still on its way
	if records, err := store.Inspect(context.Background(), lease.Filter{Held: true}); err != nil ||
		len(records) > 0 {
		b.wrong = append(b.wrong, fmt.Sprintf("left behind: %+v, %v", records, err))
	}
	return b
}

// work takes the lock, if it can, and holds it for a while.
func work(c *rowlock.Client, b *believers, random *rand.Rand) {
	part := func() time.Duration { return time.Duration(random.Int64N(int64(TTL))) }
	opts := [][]rowlock.Option{
		nil, {rowlock.NoRenew()}, {rowlock.TTL(5 * time.Second)}, {rowlock.MaxHold(time.Second + part())},
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*part()+1)
	defer cancel()
	l, err := c.Lock(ctx, b.key, opts[random.IntN(len(opts))]...)
	if err != nil {
		time.Sleep(part() / 10)
		return
	}
	b.add(l)
	time.Sleep(part())
	if random.IntN(10) > 0 { // or die
		_ = l.Unlock(ctx)
		return
	}
	<-time.After(part())
	_ = l.Unlock(context.Background())
}

// A TTL for users that want a lock for ever.
func TestTheLongestLeaseExcludesToo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		c, err := rowlock.Open(e.DB, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l := Take(t, c, "ttl", rowlock.TTL(math.MaxInt64))
		defer runtime.KeepAlive(l)
		if err := Take(t, c, "minhold", rowlock.MinHold(24*time.Hour)).Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		for _, key := range []string{"ttl", "minhold"} {
			var held *rowlock.HeldError
			if _, err := c.TryLock(t.Context(), key); !errors.As(err, &held) ||
				held.Remaining < 24*time.Hour-time.Minute {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}
