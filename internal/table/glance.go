package table

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// glance looks for teams without a live member, and ends them. Callers that come while an earlier
// look runs share the next one, which begins after all of their commits: a thousand that leave at
// once look once and end the team once.
type glance struct {
	store *Store

	mu   sync.Mutex
	next *glanced
	busy bool
}

type glanced struct {
	keys  map[string]bool
	ended map[string]lease.Released // of the keys that no member holds now
	done  chan struct{}
}

// look ends those of keys' teams that have no live member. It writes what became of a key into out
// for the first that has left it, so that the key is announced once. All others are told that the
// key is shared. An error is none of theirs: such a team is ended by the next taker.
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
	mine.ended = make(map[string]lease.Released)
	for _, key := range g.store.emptyTeams(ctx, keys) {
		mine.ended[key] = g.store.freed(ctx, key)
	}
	close(mine.done)
	g.mu.Lock()
	defer g.mu.Unlock()
	following := g.next
	if g.next, g.busy = nil, following != nil; g.busy {
		go g.run(context.Background(), following)
	}
}

// emptyTeams returns which keys a team without a live member holds that is to be ended.
func (s *Store) emptyTeams(ctx context.Context, keys []string) []string {
	empty, _ := ask(ctx, s.engine, lane.Release, "release", keys[0],
		func(ctx context.Context, session *sqlstore.Session) (empty []string, err error) {
			err = session.Query(ctx, s.d.Text("member-others"), []any{s.d.List(keys)},
				func(row sqlstore.Columns) error {
					var key []byte
					var wished int64
					err := row.Scan(&key, &wished)
					// A request of this process that is under way joins the team sooner than
					// it could make another.
					if wished != 0 || !s.joins.asks(string(key)) {
						empty = append(empty, string(key))
					}
					return err
				})
			return empty, err
		})
	return empty
}

// freed ends a team without members, and finds out whether another process waits for its key.
func (s *Store) freed(ctx context.Context, key string) (out lease.Released) {
	ended, err := s.endTeam(ctx, key)
	if err != nil || !ended {
		return out
	}
	if waits, err := s.Awaited(ctx, s.process.alone(), []string{key}); err == nil {
		out.Awaited = waits[0]
	}
	return out
}
