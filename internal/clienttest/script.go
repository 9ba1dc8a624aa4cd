package clienttest

import (
	"context"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// Script is a store in memory that a test can get in the way of. A field that is nil leaves the
// call to the store.
type Script struct {
	*memstore.Store
	OnAcquire    func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)
	OnRenew      func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error)
	OnRelease    func(context.Context, []lease.Lease) ([]lease.Released, error)
	OnHandOver   func(context.Context, []lease.HandOver) ([]lease.Acquired, error)
	OnInspect    func(context.Context, lease.Filter) ([]lease.Record, error)
	OnAcquireAll func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)

	OnAcquireAny func(context.Context, []lease.AcquireRequest, int) ([]lease.Acquired, error)
	OnShare      func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)
	OnDowngrade  func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error)

	mu          sync.Mutex
	AcquireAnys [][]lease.AcquireRequest
	AcquireAlls [][]lease.AcquireRequest
	Acquires    []lease.AcquireRequest
	Renewals    []lease.RenewRequest
	Releases    []released
	HandOvers   []lease.HandOver
	Polls       []time.Time
}

type released struct {
	lease.Lease
	At time.Time
}

// NewScript returns a store that works.
func NewScript() *Script { return &Script{Store: memstore.New()} }

func (s *Script) Acquire(ctx context.Context,
	reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	s.mu.Lock()
	s.Acquires = append(s.Acquires, reqs...)
	s.mu.Unlock()
	if s.OnAcquire != nil {
		return s.OnAcquire(ctx, reqs)
	}
	return s.Store.Acquire(ctx, reqs)
}

func (s *Script) AcquireAll(ctx context.Context,
	reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	s.mu.Lock()
	s.AcquireAlls = append(s.AcquireAlls, reqs)
	s.mu.Unlock()
	if s.OnAcquireAll != nil {
		return s.OnAcquireAll(ctx, reqs)
	}
	return s.Store.AcquireAll(ctx, reqs)
}

func (s *Script) AcquireAny(ctx context.Context,
	reqs []lease.AcquireRequest, n int,
) ([]lease.Acquired, error) {
	s.mu.Lock()
	s.AcquireAnys = append(s.AcquireAnys, reqs)
	s.mu.Unlock()
	if s.OnAcquireAny != nil {
		return s.OnAcquireAny(ctx, reqs, n)
	}
	return s.Store.AcquireAny(ctx, reqs, n)
}

func (s *Script) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	s.mu.Lock()
	s.Renewals = append(s.Renewals, reqs...)
	s.mu.Unlock()
	if s.OnRenew != nil {
		return s.OnRenew(ctx, reqs)
	}
	return s.Store.Renew(ctx, reqs)
}

func (s *Script) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	s.mu.Lock()
	for _, l := range leases {
		s.Releases = append(s.Releases, released{l, time.Now()})
	}
	s.mu.Unlock()
	if s.OnRelease != nil {
		return s.OnRelease(ctx, leases)
	}
	return s.Store.Release(ctx, leases)
}

func (s *Script) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	s.mu.Lock()
	s.HandOvers = append(s.HandOvers, items...)
	s.mu.Unlock()
	if s.OnHandOver != nil {
		return s.OnHandOver(ctx, items)
	}
	return s.Store.HandOver(ctx, items)
}

func (s *Script) Share(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if s.OnShare != nil {
		return s.OnShare(ctx, reqs)
	}
	return s.Store.Share(ctx, reqs)
}

func (s *Script) Downgrade(
	ctx context.Context, reqs []lease.RenewRequest,
) ([]lease.Renewed, error) {
	if s.OnDowngrade != nil {
		return s.OnDowngrade(ctx, reqs)
	}
	return s.Store.Downgrade(ctx, reqs)
}

func (s *Script) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	s.mu.Lock()
	s.Polls = append(s.Polls, time.Now())
	s.mu.Unlock()
	if s.OnInspect != nil {
		return s.OnInspect(ctx, f)
	}
	return s.Store.Inspect(ctx, f)
}

// Polled returns how many polls there were.
func (s *Script) Polled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Polls)
}

// Calls returns how many acquires, renewals and releases there were.
func (s *Script) Calls() (acquires, renewals, releases int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Acquires), len(s.Renewals), len(s.Releases)
}
