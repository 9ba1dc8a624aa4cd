package clienttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// Nest is callers that hold keys and ask for others within, in any order. It fails the test where a
// call waits for more than a minute, or to share several keys for more than two, or, if Strict, is
// ended though it is in no cycle.
type Nest struct {
	*testing.T
	Keys          []string
	Strict, Share bool
	// Pause is for how long they rest, and hold a key before they ask for another, at most.
	Pause time.Duration

	mu      sync.Mutex
	callers []*nester
	granted int
}

// nester is one of them.
type nester struct {
	holds, waits []string
	held, waited []string  // when its last call ended
	until        time.Time // when that was
}

// now is what it holds and waits for. A call that has ended at this instant was waiting when others
// were ended, too: two cycles may have a caller in common.
func (c *nester) now() (holds, waits []string) {
	if !c.until.Equal(time.Now()) {
		return c.holds, c.waits
	}
	return slices.Concat(c.holds, c.held), slices.Concat(c.waits, c.waited)
}

// Play has callers of the clients make so many rounds each. It returns how often they were granted
// what they asked for.
func (n *Nest) Play(clients []*rowlock.Client, rng *rand.Rand, rounds int) int {
	var all sync.WaitGroup
	for i := range 2 + rng.IntN(5) {
		me, mine := &nester{}, rand.New(rand.NewPCG(rng.Uint64(), 1))
		n.mu.Lock()
		n.callers = append(n.callers, me)
		n.mu.Unlock()
		all.Go(func() {
			for range rounds {
				n.round(clients[i%len(clients)], me, mine)
				time.Sleep(UpTo(mine, n.Pause))
			}
		})
	}
	all.Wait()
	return n.granted
}

// round takes keys one after the other, each within the lock before it.
func (n *Nest) round(c *rowlock.Client, me *nester, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(n.Context(), 5*time.Minute)
	defer cancel()
	order := rng.Perm(len(n.Keys))
	for len(order) > 0 && rng.IntN(4) > 0 {
		count, share := 1+rng.IntN(min(2, len(order))), n.Share && rng.IntN(2) == 0
		var keys []string
		for _, k := range order[:count] {
			keys = append(keys, n.Keys[k])
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
		time.Sleep(UpTo(rng, n.Pause))
	}
}

// call takes keys, or returns nil if the call was ended as part of a cycle.
func (n *Nest) call(ctx context.Context, c *rowlock.Client, me *nester, keys []string, share bool) *rowlock.Locks {
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
	me.held, me.waited, me.until = slices.Clone(me.holds), keys, time.Now()
	limit := time.Minute
	if share && len(keys) > 1 {
		limit *= 2 // intents let it in at most every 11 s, and then a key may be held exclusively
	}
	if took := time.Since(began); took > limit {
		n.Errorf("a call for %q took %v: %v", keys, took, err)
	}
	switch {
	case errors.Is(err, rowlock.ErrDeadlock):
		if n.Strict && !n.inCycle(me) {
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
func (n *Nest) inCycle(me *nester) bool {
	seen := map[*nester]bool{}
	for next := []*nester{me}; len(next) > 0; {
		_, wanted := next[0].now()
		next = next[1:]
		for _, to := range n.callers {
			holds, _ := to.now()
			waits := slices.ContainsFunc(wanted, func(key string) bool { return slices.Contains(holds, key) })
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
