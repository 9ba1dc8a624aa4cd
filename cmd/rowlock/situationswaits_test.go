package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/promrowlock"
)

// patient is the least EvictAfter.
const patient = time.Second

// until waits until a tool says something.
func (s *stage) until(tool, says string) {
	s.Helper()
	s.scene.Eventually(says, func() bool { return strings.Contains(s.tool(tool), says) })
}

// aside has a call wait until the test ends. Its error is read by then.
func (s *stage) aside(call func(ctx context.Context) error) <-chan error {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	over := make(chan struct{})
	go func() { ended <- call(ctx); close(over) }()
	s.Cleanup(func() { cancel(); <-over })
	return ended
}

// waits has a client wait for the key until the test ends.
func (s *stage) waits(identity string, change ...func(*rowlock.Config)) {
	s.Helper()
	c := s.scene.Client(append(change, func(c *rowlock.Config) { c.Identity = identity })...)
	s.aside(func(ctx context.Context) error { _, err := c.Lock(ctx, "k"); return err })
	s.until("waiters k", identity)
}

func fairly(c *rowlock.Config) { c.Fair = true }

func (s *stage) waitedFor() {
	s.alive()
	s.waits("web-2")
	s.waits("web-3", fairly)
}

func (s *stage) writerWaits() {
	s.shared()
	s.waits("web-3")
}

func (s *stage) waitsForAny() {
	c, _ := s.holder()
	s.scene.Take(c, "other")
	w := s.scene.Client(func(c *rowlock.Config) { c.Identity = "web-2" })
	s.aside(func(ctx context.Context) error { _, err := w.LockAny(ctx, []string{"k", "other"}); return err })
	s.until("waiters k", "web-2")
	s.until("waiters other", "web-2")
}

// waitsWithoutName is a process of a client that wrote no identity, as they did once.
func (s *stage) waitsWithoutName() {
	s.alive()
	id := lease.NewOwner()
	s.Exec(s.T, `INSERT INTO {rowlock_queue} ({key}, waiter, note, alive_until) VALUES (?, ?, '', `+testdb.Later+`)`,
		[]byte("k"), id[:])
}

// leads has three processes run for an election, of which one leads.
func (s *stage) leads() {
	leader := s.elects("web-1", "web-2", "web-3")
	s.until("waiters election/k", "web-")
	s.exposes(leader.collector, leader.locks)
	eventually(s.T, "the candidates", func() bool {
		out, _, _ := s.does("waiters", "election/k", "-o", "json")
		return strings.Count(out, `"identity":"web-`) == 2
	})
}

// candidate is a process that runs for an election, and its metrics, which are not exposed yet.
type candidate struct {
	locks     *rowlock.Client
	collector *promrowlock.Collector
}

func (s *stage) candidate(identity string) candidate {
	s.Helper()
	collector, err := promrowlock.New(promrowlock.Config{})
	s.scene.OK(err)
	return candidate{s.scene.Client(func(c *rowlock.Config) {
		c.Identity, c.Hooks = identity, collector.Hooks()
	}), collector}
}

// elects returns the leader of an election that goes on until the test ends.
func (s *stage) elects(identities ...string) candidate {
	s.Helper()
	leader := make(chan candidate, len(identities))
	for _, identity := range identities {
		c := s.candidate(identity)
		s.aside(func(ctx context.Context) error {
			return election.Run(ctx, c.locks, "k", func(ctx context.Context, _ *rowlock.Lock) error {
				leader <- c
				<-ctx.Done()
				return nil
			})
		})
	}
	return servertest.Await(s.T, servertest.Patience, leader, "a leader")
}

// blind is a store whose client does not see who else waits until it may: what it records can be
// looked at before a call is ended for it.
type blind struct {
	lease.Store
	sees atomic.Bool
}

func (b *blind) Unwrap() lease.Store { return b.Store }

func (b *blind) graph() lease.Graph {
	g, _ := adapter.As[lease.Graph](b.Store)
	return g
}

func (b *blind) Record(ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration) error {
	return b.graph().Record(ctx, by, chains, life)
}

func (b *blind) Erase(ctx context.Context, chains []lease.Caller) error {
	return b.graph().Erase(ctx, chains)
}

func (b *blind) Edges(ctx context.Context, by lease.Party, from []lease.Owner, limit int) ([]lease.Edge, error) {
	if !b.sees.Load() {
		return nil, nil
	}
	return b.graph().Edges(ctx, by, from, limit)
}

// blinded is a client on such a store.
func (s *stage) blinded(identity string, c *promrowlock.Collector) (*rowlock.Client, *blind) {
	s.Helper()
	table, err := rowlock.OpenTable(s.Pool(s.T), s.Dialect, nil)
	s.scene.OK(err)
	s.Cleanup(func() { _ = table.Close() })
	b := &blind{Store: table}
	client, err := rowlock.New(b, servertest.Config(func(cfg *rowlock.Config) {
		cfg.Identity, cfg.Hooks = identity, c.Hooks()
	}))
	s.scene.OK(err)
	s.Cleanup(func() { s.scene.OK(client.Close()) })
	return client, b
}

// ring are two processes, each of which holds a key and waits for the other's, and the errors of
// their calls.
type ring struct {
	sees  []*blind
	locks []*rowlock.Client
	held  []*rowlock.Lock
	ended []<-chan error
	told  []*promrowlock.Collector
}

// rings brings it about. The contexts tell which call holds what.
func (s *stage) rings() *ring {
	s.Helper()
	r := &ring{}
	keys := []string{"k", "other"}
	for i, key := range keys {
		collector, err := promrowlock.New(promrowlock.Config{})
		s.scene.OK(err)
		c, b := s.blinded(fmt.Sprint("web-", i+1), collector)
		r.sees, r.locks, r.told = append(r.sees, b), append(r.locks, c), append(r.told, collector)
		r.held = append(r.held, s.scene.Take(c, key))
	}
	for i := range keys {
		r.ended = append(r.ended, s.aside(func(ctx context.Context) error {
			within, cancel := context.WithCancel(r.held[i].Context())
			defer cancel()
			context.AfterFunc(ctx, cancel)
			_, err := r.locks[i].Lock(within, keys[1-i])
			return err
		}))
	}
	s.until("doctor", "2 calls have waited for each other")
	return r
}

func (s *stage) deadlock() { s.rings() }

// deadlockEnded is after rowlock has ended one of the calls: the other one waits on.
func (s *stage) deadlockEnded() {
	r := s.rings()
	for _, b := range r.sees {
		b.sees.Store(true)
	}
	var err error
	select {
	case err = <-r.ended[0]:
		s.exposes(r.told[0], r.locks[0])
	case err = <-r.ended[1]:
		s.exposes(r.told[1], r.locks[1])
	}
	if !errors.Is(err, rowlock.ErrDeadlock) {
		s.Errorf("the call ended with %v", err)
	}
	s.until("doctor", "no calls wait for each other")
}

// suspicion are two processes whose contexts do not tell. Beside them a leader waits for what a
// candidate holds, for as long: the candidate waits for nothing that the leader would have to end.
func (s *stage) suspicion() {
	one, two := s.candidate("web-8"), s.candidate("web-9")
	leading := s.elects("web-1")
	s.scene.Take(one.locks, "e")
	s.aside(func(ctx context.Context) error {
		return election.Run(ctx, one.locks, "k", func(context.Context, *rowlock.Lock) error { return nil })
	})
	s.aside(func(ctx context.Context) error { _, err := leading.locks.Lock(ctx, "e"); return err })
	s.exposes(leading.collector, leading.locks)
	three := s.candidate("web-10")
	s.scene.Take(two.locks, "k")
	s.scene.Take(three.locks, "other")
	s.aside(func(ctx context.Context) error { _, err := two.locks.Lock(ctx, "other"); return err })
	s.aside(func(ctx context.Context) error { _, err := three.locks.Lock(ctx, "k"); return err })
	s.until("doctor", "perhaps in a cycle")
}
