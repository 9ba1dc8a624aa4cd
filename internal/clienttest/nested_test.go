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
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// Callers of up to three clients that hold one key and ask for others, in any order, so that they
// wait for each other all the time: each cycle is broken soon, and no call is ended that is in
// none. Calls that share a key, and fair clients, wait for more than holders: of them only the
// first is asked. A call shares one key: see RLockAll.
func TestNestedCallsInAnyOrder(t *testing.T) {
	for _, c := range []struct{ fair, share bool }{{}, {fair: true}, {share: true}, {true, true}} {
		t.Run(fmt.Sprintf("fair %t, share %t", c.fair, c.share), func(t *testing.T) {
			manySchedules(t, func(t *testing.T, rng *rand.Rand) int {
				n := &nest{T: t, strict: !c.fair && !c.share, share: c.share}
				return n.play(c.fair, rng)
			})
		})
	}
}

// nest is callers that hold keys and wait for others.
type nest struct {
	*testing.T
	strict, share bool

	mu      sync.Mutex
	callers []*nester
	granted int
}

// nester is one of them.
type nester struct {
	holds, waits []string
}

func (n *nest) play(fair bool, rng *rand.Rand) int {
	store := memstore.New()
	var clients []*rowlock.Client
	for range 1 + rng.IntN(3) {
		clients = append(clients, Client(n.T, store, &rowlock.Config{
			Fair: fair, TTL: TTL, Reaper: rowlock.ReaperConfig{Off: true},
			Hints: []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff}[rng.IntN(2)],
		}))
	}
	var all sync.WaitGroup
	for i := range 2 + rng.IntN(5) {
		me, mine := &nester{}, rand.New(rand.NewPCG(rng.Uint64(), 1))
		n.callers = append(n.callers, me)
		all.Go(func() {
			for range 8 {
				n.round(clients[i%len(clients)], me, mine)
				time.Sleep(upTo(mine, time.Second))
			}
		})
	}
	all.Wait()
	return n.granted
}

// round takes keys one after the other, each within the lock before it.
func (n *nest) round(c *rowlock.Client, me *nester, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(n.Context(), 5*time.Minute)
	defer cancel()
	order := rng.Perm(len(letters))
	for len(order) > 0 && rng.IntN(4) > 0 {
		count, share := 1+rng.IntN(min(2, len(order))), n.share && rng.IntN(2) == 0
		if share {
			count = 1
		}
		var keys []string
		for _, k := range order[:count] {
			keys = append(keys, letters[k])
		}
		order = order[count:]
		locks := n.call(ctx, c, me, keys, share)
		if locks == nil {
			break
		}
		defer func() {
			n.mu.Lock()
			me.holds = slices.DeleteFunc(me.holds, func(key string) bool { return slices.Contains(keys, key) })
			n.mu.Unlock()
			if err := locks.Unlock(n.Context()); err != nil {
				n.Error(err)
			}
		}()
		ctx = locks.Context()
		time.Sleep(upTo(rng, time.Second))
	}
}

// call takes keys, or returns nil if the call was ended as part of a cycle.
func (n *nest) call(ctx context.Context, c *rowlock.Client, me *nester, keys []string, share bool) *rowlock.Locks {
	n.mu.Lock()
	me.waits = keys
	n.mu.Unlock()
	began, get := time.Now(), c.LockAll
	if share {
		get = c.RLockAll
	}
	locks, err := get(ctx, keys)
	n.mu.Lock()
	defer n.mu.Unlock()
	if took := time.Since(began); took > time.Minute {
		n.Errorf("a call for %q took %v: %v", keys, took, err)
	}
	switch {
	case errors.Is(err, rowlock.ErrDeadlock):
		if n.strict && !n.inCycle(me) {
			n.Errorf("a call for %q within %q was ended, and nobody waits for it: %v", keys, me.holds, err)
		}
	case err != nil:
		n.Errorf("a call for %q (share %t) within %q: %v", keys, share, me.holds, err)
		for i, other := range n.callers {
			n.Logf("caller %d holds %q and waits for %q", i, other.holds, other.waits)
		}
	default:
		n.granted++
		me.holds = append(me.holds, keys...)
	}
	me.waits = nil
	return locks
}

// inCycle reports whether a holder of what me waits for waits for me.
func (n *nest) inCycle(me *nester) bool {
	seen := map[*nester]bool{}
	for next := []*nester{me}; len(next) > 0; {
		from := next[0]
		next = next[1:]
		for _, to := range n.callers {
			waits := slices.ContainsFunc(from.waits, func(key string) bool { return slices.Contains(to.holds, key) })
			switch {
			case !waits || seen[to]:
			case to == me:
				return true
			default:
				seen[to], next = true, append(next, to)
			}
		}
	}
	return false
}

// A reader of several keys that is behind a writer of its own client, and for whom a member of the
// group waits, is let in when the writer's intent lets readers in.
func TestAReaderOfSeveralKeysAsksBehindAWriterOfItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c, other := Client(t, s, nil), Client(t, s, nil)
		member, err := other.RLock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		held := Take(t, c, "c")
		writer := WaitIn(t, t.Context(), c, "a")
		waits := WaitIn(t, member.Context(), other, "c")
		ctx, cancel := context.WithTimeout(held.Context(), lease.IntentRefuses+2*lease.IntentAdmits)
		defer cancel()
		both, err := c.RLockAll(ctx, []string{"a", "b"})
		if err != nil {
			t.Fatalf("the reader: %v", err)
		}
		ok := []error{both.Unlock(t.Context()), held.Unlock(t.Context())}
		got := <-waits
		ok = append(ok, got.Err, got.Lock.Unlock(t.Context()), member.Unlock(t.Context()))
		got = <-writer
		if err := errors.Join(append(ok, got.Err, got.Lock.Unlock(t.Context()))...); err != nil {
			t.Error(err)
		}
	})
}
