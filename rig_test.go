package rowlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// What a client's locks have unless a test says otherwise.
const (
	ttl    = 30 * time.Second
	margin = 3 * time.Second
	trust  = ttl - margin
)

var errDown = errors.New("connection refused")

// script is a store in memory that a test can get in the way of. What is nil is the store's own.
type script struct {
	*memstore.Store
	acquire func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)
	renew   func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error)
	release func(context.Context, []lease.Lease) ([]lease.Released, error)
	pass    func(context.Context, []lease.HandOver) ([]lease.Acquired, error)
	inspect func(context.Context, lease.Filter) ([]lease.Record, error)
	all     func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)

	mu       sync.Mutex
	alls     [][]lease.AcquireRequest
	acquires []lease.AcquireRequest
	renewals []lease.RenewRequest
	releases []released
	passes   []lease.HandOver
	looks    []time.Time
}

type released struct {
	lease.Lease
	at time.Time
}

func newScript() *script { return &script{Store: memstore.New()} }

func (s *script) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	s.mu.Lock()
	s.acquires = append(s.acquires, reqs...)
	s.mu.Unlock()
	if s.acquire != nil {
		return s.acquire(ctx, reqs)
	}
	return s.Store.Acquire(ctx, reqs)
}

func (s *script) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	s.mu.Lock()
	s.alls = append(s.alls, reqs)
	s.mu.Unlock()
	if s.all != nil {
		return s.all(ctx, reqs)
	}
	return s.Store.AcquireAll(ctx, reqs)
}

func (s *script) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	s.mu.Lock()
	s.renewals = append(s.renewals, reqs...)
	s.mu.Unlock()
	if s.renew != nil {
		return s.renew(ctx, reqs)
	}
	return s.Store.Renew(ctx, reqs)
}

func (s *script) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	s.mu.Lock()
	for _, l := range leases {
		s.releases = append(s.releases, released{l, time.Now()})
	}
	s.mu.Unlock()
	if s.release != nil {
		return s.release(ctx, leases)
	}
	return s.Store.Release(ctx, leases)
}

func (s *script) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	s.mu.Lock()
	s.passes = append(s.passes, items...)
	s.mu.Unlock()
	if s.pass != nil {
		return s.pass(ctx, items)
	}
	return s.Store.HandOver(ctx, items)
}

func (s *script) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	s.mu.Lock()
	s.looks = append(s.looks, time.Now())
	s.mu.Unlock()
	if s.inspect != nil {
		return s.inspect(ctx, f)
	}
	return s.Store.Inspect(ctx, f)
}

// looked returns how often waiters have looked.
func (s *script) looked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.looks)
}

// asked returns how many acquires, renewals and releases there were.
func (s *script) asked() (acquires, renewals, releases int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acquires), len(s.renewals), len(s.releases)
}

// record returns what the store knows of a key.
func record(t *testing.T, s lease.Store, key string) lease.Record {
	t.Helper()
	records, err := s.Inspect(context.Background(), lease.Filter{Keys: []string{key}})
	if err != nil || len(records) > 1 {
		t.Fatalf("inspect %q: %+v, %v", key, records, err)
	}
	if len(records) == 0 {
		return lease.Record{}
	}
	return records[0]
}

func isHeld(t *testing.T, s lease.Store, key string) bool {
	t.Helper()
	return record(t, s, key).Held
}

// another takes a key directly at the store, as another process does that never renews.
func another(t *testing.T, s lease.Store, key string, ttl time.Duration) lease.Lease {
	t.Helper()
	req := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl, Note: "another"}
	answers, err := s.Acquire(context.Background(), []lease.AcquireRequest{req})
	if err != nil || !answers[0].Granted {
		t.Fatalf("acquire %q: %+v, %v", key, answers, err)
	}
	return lease.Lease{Key: key, Owner: req.Owner, Token: answers[0].Token}
}

// client returns a client on a store, without a reaper unless cfg is given. It is closed before the bubble ends.
func client(t *testing.T, s lease.Store, cfg *rowlock.Config) *rowlock.Client {
	t.Helper()
	if cfg == nil {
		cfg = &rowlock.Config{}
		cfg.Reaper.Off = true
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := rowlock.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// bubble runs a test with a client on a store, in virtual time.
func bubble(t *testing.T, f func(t *testing.T, c *rowlock.Client, s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		f(t, client(t, s, nil), s)
	})
}

func take(t *testing.T, c *rowlock.Client, key string, opts ...rowlock.Option) *rowlock.Lock {
	t.Helper()
	l, err := c.TryLock(t.Context(), key, opts...)
	if err != nil {
		t.Fatalf("TryLock %q: %v", key, err)
	}
	return l
}

func wantIs(t *testing.T, what string, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("%s: %v, want one that is %v", what, err, target)
		}
	}
}

// alive fails the test if the lock has ended.
func alive(t *testing.T, l *rowlock.Lock) {
	t.Helper()
	synctest.Wait()
	if cause := context.Cause(l.Context()); cause != nil {
		t.Errorf("%q ended: %v", l.Key(), cause)
	}
}

// endsAt waits for the lock to end and fails the test unless it does so with cause, that long after from.
func endsAt(t *testing.T, l *rowlock.Lock, from time.Time, after time.Duration, cause error) {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(100 * ttl):
		t.Fatalf("%q did not end", l.Key())
	}
	if got := time.Since(from); got != after {
		t.Errorf("%q ended after %v, want %v", l.Key(), got, after)
	}
	wantIs(t, "cause", context.Cause(l.Context()), cause)
}

// journal is a log that a test can read.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// fencing is a store whose leases can be fenced and released within transactions of its own kind.
type fencing struct {
	*script

	mu     sync.Mutex
	locked map[string]int // rows by the transactions that have them locked
}

func newFencing() *fencing {
	f := &fencing{script: newScript(), locked: make(map[string]int)}
	f.renew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		answers := make([]lease.Renewed, len(reqs))
		for i, r := range reqs {
			if f.isLocked(r.Key) {
				answers[i].Outcome = lease.Busy
				continue
			}
			one, err := f.Store.Renew(ctx, []lease.RenewRequest{r})
			if err != nil {
				return nil, err
			}
			answers[i] = one[0]
		}
		return answers, nil
	}
	return f
}

func (f *fencing) isLocked(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.locked[key] > 0
}

// transaction is one of the caller's.
type transaction struct {
	store    *fencing
	fenced   []string
	released []lease.Lease
}

var errForeign = fmt.Errorf("%w: of a test", lease.ErrForeignTx)

func (*transaction) QueryOne(context.Context, string, []any, ...any) error { return errForeign }
func (*transaction) Exec(context.Context, string, []any) (int64, error)    { return 0, errForeign }
func (t *transaction) lock(key string)                                     { t.change(key, 1); t.fenced = append(t.fenced, key) }

func (t *transaction) change(key string, by int) {
	t.store.mu.Lock()
	t.store.locked[key] += by
	t.store.mu.Unlock()
}
func (f *fencing) begin() *transaction { return &transaction{store: f} }

func (t *transaction) end() {
	for _, key := range t.fenced {
		t.change(key, -1)
	}
	t.fenced = nil
}

func (t *transaction) commit() {
	_, _ = t.store.Store.Release(context.Background(), t.released)
	t.end()
}

func (f *fencing) check(l lease.Lease) error {
	records, err := f.Inspect(context.Background(), lease.Filter{Keys: []string{l.Key}})
	if err != nil {
		return err
	}
	if len(records) != 1 || records[0].Lease != l {
		return fmt.Errorf("%w: %q", lease.ErrFenced, l.Key)
	}
	return nil
}

func (f *fencing) Fence(_ context.Context, tx lease.Runner, l lease.Lease) error {
	if err := f.check(l); err != nil {
		return err
	}
	tx.(*transaction).lock(l.Key)
	return nil
}

func (f *fencing) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if err := f.Fence(ctx, tx, l); err != nil {
		return err
	}
	tx.(*transaction).released = append(tx.(*transaction).released, l)
	return nil
}
