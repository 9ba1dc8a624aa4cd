package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// tokenless is a store as that on ShedLock's table: its rows have no token.
type tokenless struct{ all *memstore.Store }

func (s tokenless) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	out, err := s.all.Acquire(ctx, reqs)
	for i := range out {
		out[i].Token = 0
	}
	return out, err
}

func (s tokenless) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return make([]lease.Renewed, len(reqs)), nil
}

func (s tokenless) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return s.all.Release(ctx, leases)
}

func (s tokenless) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	out, err := s.all.Inspect(ctx, f)
	for i := range out {
		out[i].Token = 0
	}
	return out, err
}

// The term is the token: without one, a leader would be told as none.
func TestALeaderWithoutATokenIsNotToldAsNone(t *testing.T) {
	locks, err := rowlock.New(tokenless{memstore.New()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	l, err := locks.TryLock(t.Context(), election.Key("e"))
	if err != nil {
		t.Fatal(err)
	}
	if term, err := election.Leader(t.Context(), locks, "e"); !errors.Is(err, lease.ErrUnsupported) {
		t.Errorf("Leader: %+v, %v, want ErrUnsupported", term, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for term, err := range election.Observe(ctx, locks, "e") {
		if !errors.Is(err, lease.ErrUnsupported) {
			t.Errorf("Observe: %+v, %v, want ErrUnsupported", term, err)
		}
		break
	}
	_ = l.Unlock(t.Context())
}
