package locktest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Flaws of what is read.
var edgeFlaws = []flaw{
	{"edges end at the first chain", func(m *mutant) {
		m.eachEdge(func(from []lease.Owner, e lease.Edge) bool { return slices.Contains(from, e.From) })
	}, []string{
		"edges are followed from chain to chain, through every key that is waited for",
		"a cycle is read once, wherever the reading begins",
		"300 chains are recorded, read and erased in one call each",
	}},
	{"a cycle is read without the edge that closes it", func(m *mutant) {
		m.eachEdge(func(from []lease.Owner, e lease.Edge) bool { return !slices.Contains(from, e.To) })
	}, []string{"a cycle is read once, wherever the reading begins"}},
	{"an edge is read twice", func(m *mutant) {
		m.edges = func(
			ctx context.Context, by lease.Party, from []lease.Owner, limit int,
		) ([]lease.Edge, error) {
			all, err := m.Store.Edges(ctx, by, from, limit)
			return append(all, all...), err
		}
	}, []string{
		"a cycle is read once, wherever the reading begins",
		"a chain has an edge to the chain that holds what it waits for",
	}},
	{"there is no limit", func(m *mutant) {
		m.edges = func(
			ctx context.Context, by lease.Party, from []lease.Owner, _ int,
		) ([]lease.Edge, error) {
			return m.Store.Edges(ctx, by, from, 1<<20)
		}
	}, []string{"no more edges are read than asked for"}},
	{"an edge needs no record of the holder", func(m *mutant) {
		m.naive(func(n *notes, c lease.Caller, key string) (lease.Owner, lease.Token, bool) {
			row, ok := m.row(key)
			return row.Owner, row.Token, ok && row.Held
		})
	}, []string{"an edge needs a record of the holder"}},
	{"an edge needs the key only, whatever token its row has", func(m *mutant) {
		m.naive(func(n *notes, c lease.Caller, key string) (lease.Owner, lease.Token, bool) {
			row, ok := m.row(key)
			h, _, found := n.holder(key, 0)
			return h, row.Token, ok && row.Held && found
		})
	}, []string{"an edge needs the token that the key's row has now, on both sides"}},
	{"an edge needs what was recorded only", func(m *mutant) {
		m.naive(func(n *notes, c lease.Caller, key string) (lease.Owner, lease.Token, bool) {
			return n.holder(key, 0)
		})
	}, []string{"an edge needs the token that the key's row has now, on both sides"}},
	{"a wait is for the key, whichever owner has it", func(m *mutant) {
		m.naive(func(n *notes, c lease.Caller, key string) (lease.Owner, lease.Token, bool) {
			row, ok := m.row(key)
			h, token, found := n.holder(key, row.Token)
			return h, token, ok && row.Held && found
		})
	}, []string{"an edge needs the token that the key's row has now, on both sides"}},
	{"an expired lease counts until it is taken", func(m *mutant) {
		m.naive(func(n *notes, c lease.Caller, key string) (lease.Owner, lease.Token, bool) {
			row, ok := m.row(key)
			h, token, found := n.holder(key, row.Token)
			return h, token, ok && !row.Owner.IsZero() && found
		})
	}, []string{"an edge needs a lease that has not expired"}},
}

func (m *mutant) eachEdge(keep func(from []lease.Owner, e lease.Edge) bool) {
	m.edges = func(
		ctx context.Context, by lease.Party, from []lease.Owner, limit int,
	) ([]lease.Edge, error) {
		all, err := m.Store.Edges(ctx, by, from, limit)
		return slices.DeleteFunc(all, func(e lease.Edge) bool { return !keep(from, e) }), err
	}
}

// notes are chains as they were recorded.
type notes struct {
	mu  sync.Mutex
	all map[lease.Owner]lease.Caller
}

// holder returns the chain that has recorded the key with a token, or with any for 0.
func (n *notes) holder(key string, token lease.Token) (lease.Owner, lease.Token, bool) {
	for id, c := range n.all {
		for _, l := range c.Holds {
			if l.Key == key && (token == 0 || l.Token == token) {
				return id, l.Token, true
			}
		}
	}
	return lease.Owner{}, 0, false
}

// naive makes a store whose edges of the chains that are asked for lead where to says.
func (m *mutant) naive(to func(n *notes, c lease.Caller, key string) (lease.Owner, lease.Token, bool)) {
	n := &notes{all: make(map[lease.Owner]lease.Caller)}
	m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.all[c.ID] = *c
		return true
	})
	m.edges = func(
		_ context.Context, _ lease.Party, from []lease.Owner, _ int,
	) (edges []lease.Edge, err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, id := range from {
			for _, key := range n.all[id].Wants {
				if h, token, ok := to(n, n.all[id], key); ok {
					edges = append(edges, lease.Edge{From: id, To: h, Key: key, Token: token})
				}
			}
		}
		return edges, nil
	}
}
