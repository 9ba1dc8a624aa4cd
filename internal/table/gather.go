package table

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// gather makes one statement of the requests that come while an earlier statement runs: members of
// one reader group conflict with each other in nothing, so that a thousand join in one commit. A
// single request is never delayed to form a batch.
type gather struct {
	verb string
	run  func(ctx context.Context, note string, reqs []lease.RenewRequest, wanted wanted) []member

	mu      sync.Mutex
	running bool
	crowded bool // the last statement was for several callers
	pending []*gathered
	asked   map[string]int // requests under way, by key
}

// wanted returns those of a statement's requests whose callers still wait. Each try asks anew: a
// client removes what a call may have left for a few seconds after the call, and whom a later try
// let in would stay until it expires.
type wanted func() []lease.RenewRequest

type gathered struct {
	note string
	reqs []lease.RenewRequest
	out  []member
	done chan struct{}
	left bool // by its caller
}

// do answers each request. A caller that leaves early does not know the outcome, unless its
// requests still waited for an earlier statement. That may hang: the caller's time counts from now.
func (g *gather) do(ctx context.Context, note string, reqs []lease.RenewRequest) []member {
	if err := ctx.Err(); err != nil {
		return answers(reqs, nil, false, fmt.Errorf("rowlock: %s %q: %w", g.verb, reqs[0].Key, err))
	}
	g.mu.Lock()
	g.countLocked(reqs, 1)
	if !g.running && !g.crowded {
		g.running = true
		g.mu.Unlock()
		defer g.next() // also if a driver panics: all later requests would wait for this one
		defer g.count(reqs, -1)
		return g.run(ctx, note, reqs, func() []lease.RenewRequest { return slices.Clone(reqs) })
	}
	mine := &gathered{note: note, reqs: reqs, done: make(chan struct{})}
	g.pending = append(g.pending, mine)
	if !g.running {
		g.running = true
		go g.next()
	}
	g.mu.Unlock()
	late := time.After(time.Until(after(reqs[0].TTL)))
	select {
	case <-mine.done:
		return mine.out
	case <-ctx.Done():
		return answers(reqs, nil, false, g.leave(mine, ctx.Err()))
	case <-late:
		return answers(reqs, nil, false, g.leave(mine, adapter.ErrLate))
	}
}

// leave takes a caller's requests back, or says that they are under way.
func (g *gather) leave(mine *gathered, why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	mine.left = true
	if i := slices.Index(g.pending, mine); i >= 0 {
		g.pending = slices.Delete(g.pending, i, i+1)
		g.countLocked(mine.reqs, -1)
		return fmt.Errorf("rowlock: %s %q: not sent; %w", g.verb, mine.reqs[0].Key, why)
	}
	return fmt.Errorf("%w: %s %q: %w", lease.ErrUnknown, g.verb, mine.reqs[0].Key, why)
}

// asks reports whether a request for key is under way.
func (g *gather) asks(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[key] > 0
}

func (g *gather) count(reqs []lease.RenewRequest, by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.countLocked(reqs, by)
}

func (g *gather) countLocked(reqs []lease.RenewRequest, by int) {
	if g.asked == nil {
		g.asked = make(map[string]int)
	}
	for i := range reqs {
		if g.asked[reqs[i].Key] += by; g.asked[reqs[i].Key] == 0 {
			delete(g.asked, reqs[i].Key)
		}
	}
}

// next runs what has come meanwhile, on a goroutine of its own: no caller waits longer for others'
// requests than for its own. Callers that were answered together often ask again together: next
// lets those that are ready to run ask first.
func (g *gather) next() {
	g.mu.Lock()
	if g.crowded {
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
	}
	defer g.mu.Unlock()
	if g.running = len(g.pending) > 0; g.running {
		go g.together(g.pending)
		g.pending = nil
	}
}

func (g *gather) together(all []*gathered) {
	defer g.next()
	g.mu.Lock()
	g.crowded = len(all) > 1
	g.mu.Unlock()
	for len(all) > 0 {
		note, rest := all[0].note, all[:0:0]
		var batch []*gathered
		var reqs []lease.RenewRequest
		for _, one := range all {
			if one.note != note || len(reqs) >= mostMerged {
				rest = append(rest, one)
				continue
			}
			batch, reqs = append(batch, one), append(reqs, one.reqs...)
		}
		out := g.run(context.Background(), note, reqs, func() (still []lease.RenewRequest) {
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, one := range batch {
				if !one.left {
					still = append(still, one.reqs...)
				}
			}
			return still
		})
		g.count(reqs, -1)
		for _, one := range batch {
			one.out, out = out[:len(one.reqs)], out[len(one.reqs):]
			close(one.done)
		}
		all = rest
	}
}
