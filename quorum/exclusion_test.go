package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/lossy"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/quorum"
	"pgregory.net/rapid"
)

const ttl = 30 * time.Second

// far is a member as one client sees it: over a network that delays, drops and doubles, and down
// now and then.
type far struct {
	*lossy.Network
	store *memstore.Store
	away  *outage

	mu    sync.Mutex
	fates []lossy.Fate
	next  int
}

func (f *far) Raise(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
	if err := f.away.now(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.next++
	fate := f.fates[f.next%len(f.fates)]
	f.mu.Unlock()
	return lossy.Carry(ctx, fate, func(ctx context.Context) ([]lease.Raised, error) {
		return f.store.Raise(ctx, reqs)
	})
}

func (f *far) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if err := f.away.now(); err != nil {
		return nil, err
	}
	return f.Network.Acquire(ctx, reqs)
}

func (f *far) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if err := f.away.now(); err != nil {
		return nil, err
	}
	return f.Network.Renew(ctx, reqs)
}

func (f *far) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	if err := f.away.now(); err != nil {
		return nil, err
	}
	return f.Network.Release(ctx, leases)
}

// outage is when a member is down.
type outage struct {
	mu    sync.Mutex
	until time.Time
}

func (o *outage) now() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().Before(o.until) {
		return errors.New("connection refused")
	}
	return nil
}

// believers are the holders that were granted one key, in the order of the grants.
type believers struct {
	mu    sync.Mutex
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
				fmt.Sprintf("with token %d held, token %d was given out", last.Token(), l.Token()))
		}
		if last.Token() >= l.Token() {
			b.wrong = append(b.wrong, fmt.Sprintf("token %d after %d", l.Token(), last.Token()))
		}
	}
	b.last = l
}

// Members that fail at random, one or all of them, with answers delayed and lost: no two clients
// hold a key at once, tokens grow, and in the end no member is left with a lease.
func TestNoTwoHoldAKeyAtOnce(t *testing.T) {
	got := 0
	race.Checks(t, 10)
	rapid.Check(t, func(rt *rapid.T) {
		members := rapid.SampledFrom([]int{3, 3, 5}).Draw(rt, "members")
		fates := make([][]lossy.Fate, 3*members) // of each client and member
		for i := range fates {
			longest := rapid.SampledFrom([]time.Duration{time.Second, ttl}).Draw(rt, "longest")
			fates[i] = rapid.SliceOfN(lossy.Fates(longest), 1, 12).Draw(rt, "fates")
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		var b *believers
		synctest.Test(t, func(t *testing.T) { // in which nothing may fail, or rapid could not shrink
			b = contend(members, fates, seed)
		})
		got += b.got
		for _, w := range b.wrong {
			rt.Error(w)
		}
	})
	if got == 0 {
		t.Error("no lock was given out")
	}
	t.Logf("%d locks were given out", got)
}

func contend(members int, fates [][]lossy.Fate, seed uint64) *believers {
	b := new(believers)
	stores, aways := make([]*memstore.Store, members), make([]*outage, members)
	for i := range stores {
		stores[i], aways[i] = memstore.New(), new(outage)
	}
	end := time.Now().Add(8 * ttl)
	var wg sync.WaitGroup
	wg.Go(func() { outages(aways, end, rand.New(rand.NewPCG(seed, 99))) })
	for c := range len(fates) / members {
		wg.Go(func() { b.client(stores, aways, fates[c*members:], end, rand.New(rand.NewPCG(seed, uint64(c)))) })
	}
	wg.Wait()
	time.Sleep(4 * ttl) // for what is still on its way
	for i, s := range stores {
		rows, err := s.Inspect(context.Background(), lease.Filter{Held: true})
		if err != nil || len(rows) > 0 {
			b.wrong = append(b.wrong, fmt.Sprintf("left behind at member %d: %+v, %v", i+1, rows, err))
		}
	}
	return b
}

// outages takes members down at random, mostly one at a time.
func outages(aways []*outage, end time.Time, random *rand.Rand) {
	for time.Now().Before(end) {
		o := aways[random.IntN(len(aways))]
		o.mu.Lock()
		o.until = time.Now().Add(time.Duration(random.Int64N(int64(ttl))))
		o.mu.Unlock()
		time.Sleep(time.Duration(random.Int64N(int64(ttl))))
	}
}

// client is a process: a quorum over the same members, each at the end of a network of its own.
func (b *believers) client(
	stores []*memstore.Store, aways []*outage, fates [][]lossy.Fate, end time.Time, random *rand.Rand,
) {
	var all []lease.Store
	for i, s := range stores {
		all = append(all, &far{
			Network: lossy.New(s, ttl, fates[i]), store: s, away: aways[i], fates: fates[i],
		})
	}
	s, err := quorum.New(all...)
	if err != nil {
		panic(err)
	}
	cfg := &rowlock.Config{Logger: slog.New(slog.DiscardHandler)}
	cfg.Reaper.Off = true
	c, err := rowlock.New(s, cfg)
	if err != nil {
		panic(err)
	}
	for time.Now().Before(end) {
		b.work(c, random)
	}
	_ = c.Close()
	_ = s.Close()
}

// work takes the lock, if it can, and holds it for a while.
func (b *believers) work(c *rowlock.Client, random *rand.Rand) {
	part := func() time.Duration { return time.Duration(random.Int64N(int64(ttl))) }
	opts := [][]rowlock.Option{nil, {rowlock.NoRenew()}, {rowlock.TTL(5 * time.Second)}}
	ctx, cancel := context.WithTimeout(context.Background(), 2*part()+1)
	defer cancel()
	l, err := c.Lock(ctx, "k", opts[random.IntN(len(opts))]...)
	if err != nil {
		time.Sleep(part() / 10)
		return
	}
	b.add(l)
	time.Sleep(part())
	_ = l.Unlock(context.Background())
}
