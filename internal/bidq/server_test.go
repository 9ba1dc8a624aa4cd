package bidq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	trip      = 250 * time.Microsecond // of a statement
	turnWait  = 4 * time.Second        // that the server lets a session wait for a turn
	pollMost  = 250 * time.Millisecond // the default PollMax
	pollLeast = 10 * time.Millisecond  // the default PollMin
)

var errStuck = errors.New("the turn was not passed on")

// server is a database whose processes can wake one another and queue for turns, in virtual time.
type server struct {
	rows *memstore.Store

	mu        sync.Mutex
	listeners map[lease.Owner]func(key string, chosen bool)
	// waiting are the processes that wait for a key; true: for their turn.
	waiting map[string]map[lease.Owner]bool
	lines   map[string][]*ticket // the first has the turn
	asked   int                  // how often a session has queued
	refuses error                // what a session that queues gets
}

// ticket is a session that queues.
type ticket struct {
	key    string
	called chan struct{}
}

func newServer() *server {
	return &server{
		rows:      memstore.New(),
		listeners: make(map[lease.Owner]func(string, bool)), waiting: make(map[string]map[lease.Owner]bool),
		lines: make(map[string][]*ticket),
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

// queue puts a session at the end of the line.
func (s *server) queue(key string) (*ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.refuses != nil {
		return nil, s.refuses
	}
	t := &ticket{key, make(chan struct{}, 1)}
	if s.lines[key] = append(s.lines[key], t); len(s.lines[key]) == 1 {
		t.called <- struct{}{}
	}
	return t, nil
}

// quit takes a session out of the line. If it has the turn, the next session gets it.
func (s *server) quit(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[t.key]
	i := slices.Index(line, t)
	line = slices.Delete(line, i, i+1)
	if s.lines[t.key] = line; i == 0 && len(line) > 0 {
		line[0].called <- struct{}{}
	}
}

// stop has a stranger take the turn after the one that has it now, and keep it until goOn.
func (s *server) stop(t *testing.T) (goOn func()) {
	t.Helper()
	stranger, err := s.queue("key")
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	line := s.lines["key"]
	i := slices.Index(line, stranger)
	s.lines["key"] = slices.Insert(slices.Delete(line, i, i+1), min(1, i), stranger)
	s.mu.Unlock()
	<-stranger.called
	return func() { s.quit(stranger) }
}

// queued is how many sessions have a turn or wait for one.
func (s *server) queued() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		n += len(line)
	}
	return n
}

// process is the server as one process sees it.
type process struct {
	*memstore.Store
	s *server

	mu sync.Mutex
	in string // the key for which it takes turns
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

// Turns is what internal/table does with a server's locks.
func (p *process) Turns(ctx context.Context, key string, turn func() (again bool)) error {
	for {
		if err := p.await(ctx, key, turn); err != nil {
			if errors.Is(err, errDone) {
				return nil
			}
			return err
		}
	}
}

var errDone = errors.New("no more turns")

func (p *process) await(ctx context.Context, key string, turn func() (again bool)) error {
	t, err := p.s.queue(key)
	if err != nil {
		return err
	}
	defer p.s.quit(t)
	select {
	case <-t.called:
	case <-time.After(turnWait):
		return errStuck
	case <-ctx.Done():
		return ctx.Err()
	}
	time.Sleep(trip)
	if !turn() {
		return errDone
	}
	return nil
}

// Defers notes how the process registers.
func (p *process) Defers(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in = key
}

func (p *process) Wakes() bool { return true }

func (p *process) Register(
	ctx context.Context, process lease.Owner, keys []string, d time.Duration,
) error {
	p.mu.Lock()
	in := p.in
	p.mu.Unlock()
	p.s.mu.Lock()
	for _, key := range keys {
		if p.s.waiting[key] == nil {
			p.s.waiting[key] = make(map[lease.Owner]bool)
		}
		p.s.waiting[key][process] = key == in
	}
	p.s.mu.Unlock()
	return p.Store.Register(ctx, process, keys, d)
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

// Unturned returns those that do not wait for their turn.
func (p *process) Unturned(_ context.Context, key string) (all []lease.Owner, _ error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for o, turns := range p.s.waiting[key] {
		if !turns {
			all = append(all, o)
		}
	}
	return all, nil
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

// Wake wakes the next process that does not wait for its turn.
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
	for o, turns := range s.waiting[of] {
		if turns || o == process || s.listeners[o] == nil {
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
