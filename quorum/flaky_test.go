package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

const ttl = 30 * time.Second

// mode is what is wrong with a member.
type mode uint8

const (
	well   mode = iota
	down        // every call fails and does nothing
	hung        // no call does or answers anything until its context ends
	mute        // every call is carried out, and its answer is lost
	stuck       // as hung, and contexts are ignored
	tardy       // a call is carried out after a while
	asleep      // a call is carried out at once, and answered after a while
)

var errDown = errors.New("connection refused")

// flaky is a member in memory that fails as it is told to. An acquire and a release fail by do, all
// other calls too.
type flaky struct {
	*memstore.Store
	mu    sync.Mutex
	do    mode
	delay time.Duration
	free  chan struct{} // ends stuck
	// short is what a lease loses at this member: its clock runs fast.
	short float64
	seen  map[string]int // calls by name
}

func newFlaky() *flaky {
	return &flaky{Store: memstore.New(), free: make(chan struct{}), seen: make(map[string]int)}
}

func (f *flaky) be(m mode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.do = m
}

func (f *flaky) calls(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[what]
}

// restart loses everything.
func (f *flaky) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Store = memstore.New()
}

// flake carries a call out, or not, as the member's mode says.
func flake[A any](
	ctx context.Context, f *flaky, what string, call func(context.Context, *memstore.Store) (A, error),
) (none A, err error) {
	f.mu.Lock()
	f.seen[what]++
	do, delay, store := f.do, f.delay, f.Store
	f.mu.Unlock()
	switch do {
	case down:
		return none, fmt.Errorf("rowlock: %s: %w", what, errDown)
	case hung:
		<-ctx.Done()
		return none, fmt.Errorf("%w: %s: %w", lease.ErrUnknown, what, ctx.Err())
	case stuck:
		<-f.free
		return none, fmt.Errorf("%w: %s: at last", lease.ErrUnknown, what)
	case mute:
		_, _ = call(ctx, store)
		return none, fmt.Errorf("%w: %s: the reply was lost", lease.ErrUnknown, what)
	case tardy:
		time.Sleep(delay)
		return call(context.WithoutCancel(ctx), store)
	case asleep:
		a, err := call(ctx, store)
		time.Sleep(delay)
		return a, err
	}
	return call(ctx, store)
}

func (f *flaky) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return flake(ctx, f, "acquire", func(ctx context.Context, s *memstore.Store) ([]lease.Acquired, error) {
		shorter := make([]lease.AcquireRequest, len(reqs))
		for i, q := range reqs {
			q.TTL -= time.Duration(f.short * float64(q.TTL))
			shorter[i] = q
		}
		return s.Acquire(ctx, shorter)
	})
}

func (f *flaky) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return flake(ctx, f, "renew", func(ctx context.Context, s *memstore.Store) ([]lease.Renewed, error) {
		return s.Renew(ctx, reqs)
	})
}

func (f *flaky) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return flake(ctx, f, "release", func(ctx context.Context, s *memstore.Store) ([]lease.Released, error) {
		return s.Release(ctx, leases)
	})
}

func (f *flaky) Raise(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
	return flake(ctx, f, "raise", func(ctx context.Context, s *memstore.Store) ([]lease.Raised, error) {
		return s.Raise(ctx, reqs)
	})
}

func (f *flaky) Inspect(ctx context.Context, filter lease.Filter) ([]lease.Record, error) {
	return flake(ctx, f, "inspect", func(ctx context.Context, s *memstore.Store) ([]lease.Record, error) {
		return s.Inspect(ctx, filter)
	})
}

// holder is the owner that holds the key at this member now, or zero.
func (f *flaky) holder(key string) lease.Owner {
	rows, _ := f.Store.Inspect(context.Background(), lease.Filter{Keys: []string{key}, Held: true})
	if len(rows) == 0 {
		return lease.Owner{}
	}
	return rows[0].Owner
}

// bench is a quorum over flaky members.
type bench struct {
	*testing.T
	*Store
	at []*flaky
}

func newBench(t *testing.T, n int) *bench {
	t.Helper()
	b := &bench{T: t}
	for range n {
		b.at = append(b.at, newFlaky())
	}
	b.Store = b.another(Config{})
	return b
}

// another is another process on the same members.
func (b *bench) another(cfg Config) *Store {
	b.Helper()
	stores := make([]lease.Store, len(b.at))
	for i, f := range b.at {
		stores[i] = f
	}
	s, err := NewWith(cfg, stores...)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (b *bench) try(s *Store, key string) (lease.Lease, lease.Acquired, error) {
	b.Helper()
	q := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl}
	got, err := s.Acquire(context.Background(), []lease.AcquireRequest{q})
	if len(got) != 1 {
		b.Fatalf("%d answers to 1 request, %v", len(got), err)
	}
	return lease.Lease{Key: key, Owner: q.Owner, Token: got[0].Token}, got[0], err
}

func (b *bench) take(key string) lease.Lease {
	b.Helper()
	l, got, err := b.try(b.Store, key)
	if err != nil || !got.Granted {
		b.Fatalf("acquire %q: %+v, %v", key, got, err)
	}
	return l
}

func (b *bench) renew(l lease.Lease) (lease.RenewOutcome, error) {
	b.Helper()
	got, err := b.Renew(context.Background(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
	if len(got) != 1 {
		b.Fatalf("%d answers to 1 request, %v", len(got), err)
	}
	return got[0].Outcome, err
}

func (b *bench) release(l lease.Lease) lease.Released {
	b.Helper()
	got, err := b.Release(context.Background(), []lease.Lease{l})
	if err != nil {
		b.Fatalf("release %+v: %v", l, err)
	}
	return got[0]
}

// votes is how many members the owner has.
func (b *bench) votes(l lease.Lease) (n int) {
	for _, f := range b.at {
		if f.holder(l.Key) == l.Owner {
			n++
		}
	}
	return n
}
