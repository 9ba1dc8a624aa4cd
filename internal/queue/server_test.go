package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

const (
	trip      = 250 * time.Microsecond // of a statement
	pollMost  = 250 * time.Millisecond // the default PollMax
	pollLeast = 10 * time.Millisecond  // the default PollMin
)

// server is a database whose processes can wake one another, in virtual time.
type server struct {
	rows *memstore.Store

	mu        sync.Mutex
	listeners map[lease.Owner]func(key string, chosen bool)
	waiting   map[string]map[lease.Owner]bool // the processes that wait for a key
}

func newServer() *server {
	return &server{
		rows:      memstore.New(),
		listeners: make(map[lease.Owner]func(string, bool)), waiting: make(map[string]map[lease.Owner]bool),
	}
}

// scene runs a test in virtual time.
func scene(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newServer()) })
}

// client returns a client of a process of its own.
func (s *server) client(t *testing.T, change ...func(*rowlock.Config)) *rowlock.Client {
	t.Helper()
	cfg := &rowlock.Config{
		Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	}
	for _, c := range change {
		c(cfg)
	}
	c, err := rowlock.New(&process{Store: s.rows, s: s}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// process is the server as one process sees it.
type process struct {
	*memstore.Store
	s *server
}

// Every statement that changes a row takes a while, or no time would pass.

func (p *process) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	time.Sleep(trip)
	return p.Store.Acquire(ctx, reqs)
}

func (p *process) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	time.Sleep(trip)
	return p.Store.Release(ctx, leases)
}

func (p *process) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	time.Sleep(trip)
	return p.Store.HandOver(ctx, items)
}

func (p *process) Wakes() bool { return true }

func (p *process) Register(
	ctx context.Context, process lease.Owner, identity string, keys []string, d time.Duration,
) error {
	p.s.mu.Lock()
	for _, key := range keys {
		if p.s.waiting[key] == nil {
			p.s.waiting[key] = make(map[lease.Owner]bool)
		}
		p.s.waiting[key][process] = true
	}
	p.s.mu.Unlock()
	return p.Store.Register(ctx, process, identity, keys, d)
}

func (p *process) Unregister(ctx context.Context, process lease.Owner, keys []string) error {
	p.s.mu.Lock()
	for _, key := range keys {
		delete(p.s.waiting[key], process)
	}
	p.s.mu.Unlock()
	return p.Store.Unregister(ctx, process, keys)
}

// Waiting counts the processes that wait.
func (p *process) Waiting(_ context.Context, keys []string) ([]int, error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	counts := make([]int, len(keys))
	for i := range counts {
		counts[i] = len(p.s.waiting[keys[i]])
	}
	return counts, nil
}

func (p *process) ListenAs(
	ctx context.Context, process lease.Owner, heard func(key string, chosen bool),
) error {
	p.s.mu.Lock()
	p.s.listeners[process] = heard
	p.s.mu.Unlock()
	defer func() {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		delete(p.s.listeners, process)
	}()
	heard("", false)
	<-ctx.Done()
	return ctx.Err()
}

// Wake wakes the next process by owner, or the first of all.
func (p *process) Wake(_ context.Context, process lease.Owner, keys []string) error {
	time.Sleep(trip)
	for _, key := range keys {
		if to := p.s.next(process, key); to != nil {
			to(key, true)
		}
	}
	return nil
}

func (s *server) next(process lease.Owner, of string) func(key string, chosen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first, after *lease.Owner
	for o := range s.waiting[of] {
		if o == process || s.listeners[o] == nil {
			continue
		}
		if first == nil || bytes.Compare(o[:], first[:]) < 0 {
			first = &o
		}
		if bytes.Compare(o[:], process[:]) > 0 && (after == nil || bytes.Compare(o[:], after[:]) < 0) {
			after = &o
		}
	}
	if after == nil {
		after = first
	}
	if after == nil {
		return nil
	}
	return s.listeners[*after]
}
