package semaphore_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/semaphore"
)

// Calls of every kind on a semaphore by callers of up to three processes on a bad network: no more
// slots are held than the largest limit that was ever asked for, no slot is held twice, its tokens
// grow, and a permit is returned or an error. Twenty seconds after the last release, whatever it
// has returned, all slots are free, long before their leases end.
func TestCallsOfEveryKindOnABadNetwork(t *testing.T) {
	clienttest.ManySchedules(t, 5, onABadNetwork)
}

func onABadNetwork(t *testing.T, rng *rand.Rand) (granted int) {
	store := memstore.New()
	var ways []*clienttest.BadWay
	p := newPlay(t, rng, 4*time.Second)
	for range 1 + rng.IntN(3) {
		way := clienttest.NewBadWay(store, rng.Uint64())
		ways = append(ways, way)
		p.join(clienttest.Client(t, way, &rowlock.Config{
			Fair: p.fair, Hints: p.hints(), HandOvers: p.IntN(4), TTL: clienttest.TTL,
			Reaper: rowlock.ReaperConfig{Off: true},
		}))
	}
	p.run(2+rng.IntN(6), 2*time.Minute)
	for _, way := range ways {
		way.CalmDown()
	}
	time.Sleep(20 * time.Second)
	if keys := held(t, store); keys != nil {
		t.Errorf("%q are held 20 s after the last release", keys)
	}
	return p.granted
}

// The same on databases whose connections break.
func TestCallsOfEveryKindOnBadConnections(t *testing.T) {
	servertest.InBadWeather(t, 1, func(t *testing.T, s *servertest.Storm) {
		p := newPlay(t, s.Rand, 500*time.Millisecond)
		for range 1 + s.IntN(3) {
			p.join(servertest.Open(t, s.Exposed(t), s.Env, func(c *rowlock.Config) {
				c.Fair, c.Hints, c.HandOvers = p.fair, p.hints(), p.IntN(4)
			}))
		}
		s.Turn(true)
		p.run(2+s.IntN(6), 5*time.Second)
		s.Turn(false)
		t.Logf("fair %t, in order %t: %d permits", p.fair, p.inOrder, p.granted)
		other := servertest.Open(t, s.DB, s.Env, nil)
		servertest.Eventually(t, "all slots are free", func() bool { return held(t, other) == nil })
	})
}

// inspector is a client or a store.
type inspector interface {
	Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error)
}

// held are the keys that have a holder.
func held(t *testing.T, in inspector) (keys []string) {
	t.Helper()
	records, err := in.Inspect(t.Context(), lease.Filter{})
	ok(t, err)
	for _, r := range records {
		if r.Held {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// play is callers of a semaphore, and what they believe to hold.
type play struct {
	*testing.T
	*rand.Rand
	hold    time.Duration // for how long permits are held at most
	inOrder bool
	fair    bool
	resizes bool
	all     []*semaphore.Semaphore

	mu      sync.Mutex
	granted int
	most    int // slots that may be held
	live    []semaphore.Slot
	last    map[int]rowlock.Token // the newest of each slot
}

func newPlay(t *testing.T, rng *rand.Rand, hold time.Duration) *play {
	return &play{
		T: t, Rand: rng, hold: hold, inOrder: rng.IntN(2) == 0, fair: rng.IntN(2) == 0,
		resizes: rng.IntN(2) == 0, most: 1 + rng.IntN(4), last: make(map[int]rowlock.Token),
	}
}

func (p *play) hints() rowlock.Hints {
	return []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff}[p.IntN(2)]
}

// join makes the semaphore of one process.
func (p *play) join(c *rowlock.Client) {
	var with []rowlock.Option
	for _, o := range []rowlock.Option{
		rowlock.MaxHold(p.hold/4 + clienttest.UpTo(p.Rand, 5*p.hold)), rowlock.NoRenew(),
		rowlock.MinHold(1 + clienttest.UpTo(p.Rand, p.hold)), rowlock.TTL(p.hold + clienttest.UpTo(p.Rand, 5*p.hold)),
	} {
		if p.IntN(6) == 0 {
			with = append(with, o)
		}
	}
	opts := []semaphore.Option{semaphore.With(with...)}
	if p.inOrder {
		opts = append(opts, semaphore.InOrder())
	}
	p.all = append(p.all, of(p.T, c, p.most, opts...))
}

// run has callers work so long. Then nothing is held any more.
func (p *play) run(callers int, d time.Duration) {
	end := time.Now().Add(d)
	var all sync.WaitGroup
	for i := range callers {
		mine := rand.New(rand.NewPCG(p.Uint64(), 2))
		all.Go(func() {
			for time.Now().Before(end) {
				p.visit(p.all[i%len(p.all)], mine)
			}
		})
	}
	all.Wait()
}

// visit is one call, and what is done with its permit.
func (p *play) visit(s *semaphore.Semaphore, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.T.Context(), clienttest.UpTo(rng, []time.Duration{
		p.hold / 80, p.hold, 15 * p.hold,
	}[rng.IntN(3)]))
	defer cancel()
	if p.resizes && rng.IntN(20) == 0 {
		p.resize(ctx, s, 1+rng.IntN(5))
		return
	}
	get := []func(context.Context, int) (*semaphore.Permit, error){s.Acquire, s.TryAcquire}[rng.IntN(2)]
	permit, err := get(ctx, 1+rng.IntN(2))
	switch {
	case (err == nil) != (permit != nil):
		p.Errorf("permit %v and error %v", permit, err)
	case err != nil:
		time.Sleep(time.Millisecond + clienttest.UpTo(rng, 100*time.Millisecond))
		return
	}
	p.believe(permit.Slots())
	time.Sleep(clienttest.UpTo(rng, []time.Duration{1, p.hold / 13, p.hold}[rng.IntN(3)]))
	ctx, cancel = context.WithTimeout(p.T.Context(), clienttest.UpTo(rng, p.hold*3/2))
	defer cancel()
	if rng.IntN(5) == 0 {
		_ = permit.Slots()[0].Lock.Unlock(ctx)
	}
	_ = permit.Release(ctx)
	if permit.Context().Err() == nil {
		p.Errorf("permit %d lives after its Release", permit.ID())
	}
}

func (p *play) resize(ctx context.Context, s *semaphore.Semaphore, limit int) {
	p.mu.Lock()
	p.most = max(p.most, limit)
	p.mu.Unlock()
	_ = s.Resize(ctx, limit)
}

// believe notes a grant, and how many slots are believed to be held at this moment.
func (p *play) believe(slots []semaphore.Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted++
	p.live = slices.DeleteFunc(p.live, func(s semaphore.Slot) bool { return s.Lock.Context().Err() != nil })
	for _, s := range slots {
		for _, other := range p.live {
			if other.ID == s.ID && s.Lock.Context().Err() == nil {
				p.Errorf("slot %d: token %d is held, and %d was granted", s.ID, other.Token, s.Token)
			}
		}
		//rowlockvet:ignore it looks for a broken promise, and protects nothing
		if s.Token <= p.last[s.ID] {
			p.Errorf("slot %d: token %d after %d", s.ID, s.Token, p.last[s.ID])
		}
		p.last[s.ID] = s.Token
	}
	p.live = append(p.live, slots...)
	if n := len(p.live); n > p.most {
		p.Errorf("%d slots are held of %d", n, p.most)
	}
}
