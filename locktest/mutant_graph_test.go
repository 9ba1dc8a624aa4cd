package locktest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var graphFlaws = []flaw{
	{"nothing is recorded", func(m *mutant) {
		m.note = func(context.Context, lease.Party, []lease.Caller, time.Duration) error { return nil }
	}, []string{
		"a chain has an edge to the chain that holds what it waits for",
		"chains hold and wait for keys of any bytes",
	}},
	{"only the first chain is recorded", func(m *mutant) {
		m.eachRecord(func(i int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool { return i == 0 })
	}, []string{"300 chains are recorded, read and erased in one call each"}},
	{"only the first awaited key is recorded", func(m *mutant) {
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			c.Wants = c.Wants[:min(1, len(c.Wants))]
			return true
		})
	}, []string{
		"edges are followed from chain to chain, through every key that is waited for",
		"no more edges are read than asked for",
	}},
	{"a record keeps keys as text", func(m *mutant) {
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			for i, key := range c.Wants {
				c.Wants[i] = strings.ToValidUTF8(key, "?")
			}
			return true
		})
	}, []string{"chains hold and wait for keys of any bytes"}},
	{"a record lives for ever", func(m *mutant) {
		m.eachRecord(func(_ int, _ *lease.Caller, _ *lease.Party, life *time.Duration) bool {
			*life = max(*life, ttl)
			return true
		})
	}, []string{"a record counts until it expires"}},
	{"an identity is ASCII", func(m *mutant) {
		m.eachRecord(func(_ int, _ *lease.Caller, by *lease.Party, _ *time.Duration) bool {
			by.Identity = strings.Map(func(c rune) rune { return min(c, 127) }, by.Identity)
			return true
		})
	}, []string{"an identity is given back as it was recorded"}},
	{"a repeated record begins anew", func(m *mutant) {
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			_ = m.Store.Erase(context.Background(), []lease.Caller{*c})
			return true
		})
	}, []string{"a repeated record keeps its beginning and lives on"}},
	{"a repeated record is ignored", func(m *mutant) {
		var mu sync.Mutex
		known := make(map[lease.Owner]bool)
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			mu.Lock()
			defer mu.Unlock()
			old := known[c.ID]
			known[c.ID] = true
			return !old
		})
	}, []string{"a repeated record keeps its beginning and lives on", "a record counts until it expires"}},
	{"a chain begins to wait when it is recorded", func(m *mutant) {
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			c.Waited = 0
			return true
		})
	}, []string{
		"chains rank by when they began to wait, whichever was recorded first",
		"a chain has an edge to the chain that holds what it waits for",
	}},
	{"a record that comes late is extended in full", func(m *mutant) {
		var mu sync.Mutex
		waited := make(map[lease.Owner]time.Duration)
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			mu.Lock()
			defer mu.Unlock()
			c.Waited = max(c.Waited, waited[c.ID])
			waited[c.ID] = c.Waited
			return true
		})
	}, []string{"a record that comes late lives no longer than if it had been in time"}},
	{"calls and processes are one", func(m *mutant) {
		m.eachRecord(func(_ int, _ *lease.Caller, by *lease.Party, _ *time.Duration) bool {
			by.Process = false
			return true
		})
	}, []string{"calls and processes are compared only with their like"}},
	{"nothing is erased", func(m *mutant) {
		m.erase = func(context.Context, []lease.Caller) error { return nil }
	}, []string{
		"an erased record has no edge, and no other loses one",
		"300 chains are recorded, read and erased in one call each",
	}},
	{"to erase a chain erases all", func(m *mutant) {
		var mu sync.Mutex
		var all []lease.Caller
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, *c)
			return true
		})
		m.erase = func(ctx context.Context, _ []lease.Caller) error {
			mu.Lock()
			defer mu.Unlock()
			return m.Store.Erase(ctx, all)
		}
	}, []string{"an erased record has no edge, and no other loses one", "what is not recorded can be erased"}},
	{"to erase what is missing fails", func(m *mutant) {
		m.erase = func(ctx context.Context, all []lease.Caller) error {
			if len(all) == 0 {
				return lease.ErrCorrupt
			}
			return m.Store.Erase(ctx, all)
		}
	}, []string{"what is not recorded can be erased"}},
	{"to record a wait renews the lock", func(m *mutant) {
		m.eachRecord(func(_ int, c *lease.Caller, _ *lease.Party, _ *time.Duration) bool {
			for _, key := range c.Wants {
				m.ask(request(key, lease.NewOwner()))
			}
			return true
		})
	}, []string{"records of waits change no lock"}},
}

// eachRecord has change change what is recorded, and leave out a chain for which it returns false.
// All chains of a call are of one party and one life: the last change counts.
func (m *mutant) eachRecord(
	change func(i int, c *lease.Caller, by *lease.Party, life *time.Duration) bool,
) {
	m.note = func(ctx context.Context, by lease.Party, all []lease.Caller, life time.Duration) error {
		var kept []lease.Caller
		for i, c := range all {
			c.Wants = append([]string(nil), c.Wants...)
			if change(i, &c, &by, &life) {
				kept = append(kept, c)
			}
		}
		return m.Store.Record(ctx, by, kept, life)
	}
}

func (m *mutant) Record(
	ctx context.Context, by lease.Party, all []lease.Caller, life time.Duration,
) error {
	return m.note(ctx, by, all, life)
}

func (m *mutant) Erase(ctx context.Context, all []lease.Caller) error { return m.erase(ctx, all) }

func (m *mutant) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	return m.edges(ctx, by, from, limit)
}
