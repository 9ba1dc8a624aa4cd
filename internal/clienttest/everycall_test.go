package clienttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/memstore"
)

// Calls of every kind with options of every kind, by callers of up to three clients on a bad
// network: no caller holds a key beside another unless both share it, tokens grow, and a lock is
// returned or an error. Twenty seconds after the last Unlock, whatever it has returned, all keys
// are free, long before their leases end.
func TestCallsOfEveryKindOnABadNetwork(t *testing.T) {
	seeds := race.Few(6, 120)
	for _, fair := range []bool{false, true} {
		granted := 0
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprintf("fair %t/%d", fair, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &everyCall{T: t, store: memstore.New(), last: make(map[string]rowlock.Token)}
					p.play(rand.New(rand.NewPCG(seed, 31)), fair)
					granted += p.granted
				})
			})
		}
		if granted < 30*seeds {
			t.Errorf("fair %t: %d grants in %d schedules: they prove little", fair, granted, seeds)
		}
	}
}

type everyCall struct {
	*testing.T
	store *memstore.Store

	mu      sync.Mutex
	granted int
	held    []*holding
	last    map[string]rowlock.Token // the newest that was granted alone
}

// holding is a lock that a caller was told it has.
type holding struct {
	*rowlock.Lock
	shared, unsure bool // unsure: whether it is shared, since a Downgrade
}

// play has callers work for two minutes of virtual time.
func (p *everyCall) play(rng *rand.Rand, fair bool) {
	var callers sync.WaitGroup
	var ways []*badWay
	var clients []*rowlock.Client
	for range 1 + rng.IntN(3) {
		way := &badWay{Store: p.store, rng: rand.New(rand.NewPCG(rng.Uint64(), 1))}
		cfg := &rowlock.Config{
			Fair: fair, TTL: TTL, Reaper: rowlock.ReaperConfig{Off: true},
			Hints: []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff}[rng.IntN(2)], HandOvers: rng.IntN(4),
		}
		ways, clients = append(ways, way), append(clients, Client(p.T, way, cfg))
	}
	end := time.Now().Add(2 * time.Minute)
	for i := range 2 + rng.IntN(6) {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 2))
		callers.Go(func() {
			for time.Now().Before(end) {
				p.visit(clients[i%len(clients)], mine)
			}
		})
	}
	callers.Wait()
	for _, way := range ways {
		way.calmDown()
	}
	time.Sleep(20 * time.Second)
	if got := heldKeys(p.T, p.store); got != "" {
		p.Errorf("%q are locked 20 s after the last Unlock", got)
	}
}

// visit is one call, and what is done with its locks.
func (p *everyCall) visit(c *rowlock.Client, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.Context(), upTo(rng, []time.Duration{
		50 * time.Millisecond, 5 * time.Second, time.Minute,
	}[rng.IntN(3)]))
	defer cancel()
	locks, unlock, shared, err := p.call(ctx, c, rng)
	switch {
	case errors.Is(err, rowlock.ErrConfig): // options that contradict each other
		return
	case (err == nil) != (unlock != nil):
		p.Errorf("locks %v and error %v", locks, err)
	case err != nil:
		time.Sleep(time.Millisecond + upTo(rng, 100*time.Millisecond))
		return
	}
	var mine []*holding
	for _, l := range locks {
		mine = append(mine, p.believe(l, shared))
	}
	if !shared && rng.IntN(5) == 0 {
		p.downgrade(mine[0], rng)
	}
	time.Sleep(upTo(rng, []time.Duration{1, 300 * time.Millisecond, 4 * time.Second}[rng.IntN(3)]))
	ctx, cancel = context.WithTimeout(p.Context(), upTo(rng, 6*time.Second))
	defer cancel()
	_ = unlock(ctx)
	for _, l := range locks {
		if l.Context().Err() == nil {
			p.Errorf("%q lives after its Unlock", l.Key())
		}
	}
}

// call makes a call of some kind. unlock is nil unless it was granted.
func (p *everyCall) call(ctx context.Context, c *rowlock.Client, rng *rand.Rand) (
	locks []*rowlock.Lock, unlock func(context.Context) error, shared bool, err error,
) {
	opts := someOptions(rng)
	keys := make([]string, 1+rng.IntN(3))
	for n, i := range rng.Perm(len(letters))[:len(keys)] {
		keys[n] = letters[i]
	}
	var one *rowlock.Lock
	var all *rowlock.Locks
	kind := rng.IntN(10)
	switch kind {
	case 0, 1:
		one, err = c.Lock(ctx, keys[0], opts...)
	case 2:
		one, err = c.TryLock(ctx, keys[0], opts...)
	case 3, 4:
		one, err = c.RLock(ctx, keys[0], opts...)
	case 5:
		one, err = c.LockAny(ctx, keys, opts...)
	case 6:
		one, err = c.TryLockAny(ctx, keys, opts...)
	case 7:
		all, err = c.LockAll(ctx, keys, opts...)
	case 8:
		all, err = c.TryLockAll(ctx, keys, opts...)
	case 9:
		all, err = c.RLockAll(ctx, keys, opts...)
	}
	shared = slices.Contains([]int{3, 4, 9}, kind)
	switch {
	case one != nil:
		unlock = one.Unlock
		if rng.IntN(5) == 0 {
			unlock = one.UnlockNow
		}
		return []*rowlock.Lock{one}, unlock, shared, err
	case all != nil:
		for _, key := range all.Keys() {
			locks = append(locks, all.Lock(key))
		}
		return locks, all.Unlock, shared, err
	}
	return nil, nil, shared, err
}

func someOptions(rng *rand.Rand) (opts []rowlock.Option) {
	for _, o := range []rowlock.Option{
		rowlock.MaxHold(time.Second + upTo(rng, 20*time.Second)), rowlock.NoRenew(),
		rowlock.MinHold(1 + upTo(rng, 2*time.Second)), rowlock.Priority(1 + rng.IntN(9)),
		rowlock.TTL(3*time.Second + upTo(rng, 20*time.Second)), rowlock.MaxIdle(time.Second + upTo(rng, 5*time.Second)),
	} {
		if rng.IntN(6) == 0 {
			opts = append(opts, o)
		}
	}
	return opts
}

// believe notes a grant, and who believes to hold its key at this moment.
func (p *everyCall) believe(l *rowlock.Lock, shared bool) *holding {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted++
	p.held = slices.DeleteFunc(p.held, func(h *holding) bool { return h.Context().Err() != nil })
	for _, h := range p.held {
		both := h.Key() == l.Key() && l.Context().Err() == nil
		if both && !h.unsure && (!h.shared || !shared) {
			p.Errorf("%q: token %d is held (shared %t), and %d was granted (shared %t)",
				l.Key(), h.Token(), h.shared, l.Token(), shared)
		}
	}
	if !shared && l.Token() <= p.last[l.Key()] {
		p.Errorf("%q: token %d after %d", l.Key(), l.Token(), p.last[l.Key()])
	}
	if !shared {
		p.last[l.Key()] = l.Token()
	}
	mine := &holding{Lock: l, shared: shared}
	p.held = append(p.held, mine)
	return mine
}

func (p *everyCall) downgrade(h *holding, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.Context(), upTo(rng, 4*time.Second))
	defer cancel()
	p.mu.Lock()
	h.unsure = true
	p.mu.Unlock()
	if h.Downgrade(ctx) == nil {
		p.mu.Lock()
		h.shared, h.unsure = true, false
		p.mu.Unlock()
	}
}
