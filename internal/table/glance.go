package table

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// glance looks for reader groups without a live member, and ends them. Callers that come while an
// earlier look runs share the next one, which begins after all of their commits: a thousand that
// leave at once look once and end the reader group once.
type glance struct {
	// end ends those reader groups, and returns the keys that no member holds now.
	end func(ctx context.Context, keys []string) map[string]lease.Released

	mu   sync.Mutex
	next *glanced
	busy bool
}

type glanced struct {
	keys  map[string]bool
	ended map[string]lease.Released // of the keys that no member holds now
	done  chan struct{}
}

// look ends those of keys' reader groups that have no live member. It writes what became of a key
// into out for the first that has left it, so that the key is announced once. All others are told
// that the key is shared. An error is none of theirs: such a reader group is ended by the next
// taker.
func (g *glance) look(ctx context.Context, leases []lease.Lease, out []*lease.Released) {
	if len(leases) == 0 {
		return
	}
	mine := g.begin(ctx, leases)
	select {
	case <-mine.done:
	case <-ctx.Done():
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, l := range leases {
		if ended, ok := mine.ended[l.Key]; ok {
			delete(mine.ended, l.Key)
			out[i].Awaited, out[i].Shared = ended.Awaited, ended.Shared
		}
	}
}

// begin adds keys to the next look, and runs it if none runs.
func (g *glance) begin(ctx context.Context, leases []lease.Lease) *glanced {
	g.mu.Lock()
	if g.next == nil {
		g.next = &glanced{keys: make(map[string]bool), done: make(chan struct{})}
	}
	mine := g.next
	for i := range leases {
		mine.keys[leases[i].Key] = true
	}
	runs := !g.busy
	if runs {
		g.busy, g.next = true, nil
	}
	g.mu.Unlock()
	if runs {
		g.run(ctx, mine)
	}
	return mine
}

func (g *glance) run(ctx context.Context, mine *glanced) {
	keys := make([]string, 0, len(mine.keys))
	for key := range mine.keys {
		keys = append(keys, key)
	}
	defer func() { // also if a driver panics: no later look would end
		close(mine.done)
		g.mu.Lock()
		defer g.mu.Unlock()
		following := g.next
		if g.next, g.busy = nil, following != nil; g.busy {
			go g.run(context.Background(), following)
		}
	}()
	mine.ended = g.end(ctx, keys)
}
