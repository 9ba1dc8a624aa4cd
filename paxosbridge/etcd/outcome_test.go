package etcd_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// loser loses the replies to the next transactions, as many as it is set to, or answers with
// another error instead; or those to other requests.
type loser struct {
	left atomic.Int32
	says error
	to   string // "/Txn" if it is empty
}

func (l *loser) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			err := invoke(ctx, method, req, reply, cc, opts...)
			if err == nil && strings.HasSuffix(method, cmp.Or(l.to, "/Txn")) && l.left.Add(-1) >= 0 {
				return cmp.Or(l.says, status.Error(codes.Unavailable, "the reply was lost"))
			}
			return err
		},
	)
}

func TestARepetitionResolvesALostReply(t *testing.T) {
	var lose loser
	r := newRig(t, lose.option())
	r.do(r.Open(t.Context(), "k", 1))
	lose.left.Store(1)
	l, a, err := r.try("k", 1)
	if err != nil || !a.Granted || !a.Unknown {
		t.Fatalf("acquire: %+v, %v", a, err)
	}
	lose.left.Store(1)
	if _, a, err := r.try("k", 1); err != nil || a.Granted {
		t.Errorf("acquire by another: %+v, %v", a, err)
	}
	lose.left.Store(2)
	r.wantRenew(l, lease.Extended)
	to := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
	lose.left.Store(2)
	given, err := r.HandOver(t.Context(), []lease.HandOver{{From: l, To: to}})
	if err != nil || !given[0].Granted || !given[0].Unknown || given[0].Token != l.Token+1 {
		t.Fatalf("hand over: %+v, %v", given, err)
	}
	lose.left.Store(1)
	if got := r.release(lease.Lease{Key: "k", Owner: to.Owner, Token: given[0].Token}); got.Gone {
		t.Error("a release whose reply was lost says gone")
	}
	next := r.take("k", 1)
	lose.left.Store(1)
	if ok, err := r.Seal(t.Context(), next); !ok || err != nil {
		t.Errorf("seal: %t, %v", ok, err)
	}
	if ok, err := r.Seal(t.Context(), next); ok || err != nil {
		t.Errorf("a second seal: %t, %v", ok, err)
	}
	lose.left.Store(1)
	if _, _, err := r.try("k", 1); !errors.Is(err, paxosbridge.ErrRecord) ||
		errors.Is(err, lease.ErrUnknown) {
		t.Errorf("acquire in an epoch that is sealed for good: %v", err)
	}
	lose.left.Store(1)
	if _, _, err := r.try("k", 3); !errors.Is(err, paxosbridge.ErrRecord) ||
		!errors.Is(err, lease.ErrUnknown) {
		t.Errorf("acquire in an epoch that may be opened before a late copy comes: %v", err)
	}
	lose.left.Store(1)
	r.do(r.Open(t.Context(), "k", 3))
	r.take("k", 3)
}

// etcd carries out the requests by which it exceeds its quota, and answers as to those that it then
// refuses.
func TestARequestWithoutSpaceMayHaveBeenCarriedOut(t *testing.T) {
	lose := loser{says: rpctypes.ErrGRPCNoSpace}
	r := newRig(t, lose.option())
	lose.left.Store(1)
	l, a, err := r.try("k", 0)
	if !errors.Is(err, lease.ErrUnknown) || !errors.Is(err, rpctypes.ErrNoSpace) || lose.left.Load() != 0 {
		t.Fatalf("acquire: %+v, %v", a, err)
	}
	if r.release(l).Gone {
		t.Error("what was granted is not found by its owner")
	}
	held := r.take("k", 0)
	lose.left.Store(1)
	if ok, err := r.Seal(t.Context(), held); ok || !errors.Is(err, lease.ErrUnknown) {
		t.Errorf("seal: %t, %v", ok, err)
	}
}

// Without space there is no etcd lease either, and then nothing was sent.
func TestARequestWithoutALeaseForItWasNotCarriedOut(t *testing.T) {
	lose := loser{says: rpctypes.ErrGRPCNoSpace, to: "/LeaseGrant"}
	r := newRig(t, lose.option())
	lose.left.Store(1 << 30)
	_, a, err := r.try("k", 0)
	if a.Granted || a.Unknown || !errors.Is(err, rpctypes.ErrNoSpace) || errors.Is(err, lease.ErrUnknown) {
		t.Errorf("acquire: %+v, %v", a, err)
	}
}

// The caller waits no longer than the timeout.
func TestACallWithoutAReplyHasAnUnknownOutcome(t *testing.T) {
	var lose loser
	r := newRig(t, lose.option())
	lose.left.Store(1 << 30)
	// Enough to be sent on a busy machine.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	q := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
	if a, err := r.Acquire(ctx, []lease.AcquireRequest{q}); !errors.Is(err, lease.ErrUnknown) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire: %+v, %v", a, err)
	}
	if _, err := r.Inspect(ctx, lease.Filter{}); err == nil || errors.Is(err, lease.ErrUnknown) {
		t.Errorf("inspect: %v", err)
	}
	lose.left.Store(0)
	if got := r.release(lease.Lease{Key: "k", Owner: q.Owner}); got.Gone {
		t.Error("what was granted unheard is not found by its owner")
	}
	r.take("k", 0)
}

// The test has rowlock do what it does with any store: renew, wait, wake.
func TestALockIsKeptAndWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	open := func(s lease.Store) *rowlock.Client {
		c, err := rowlock.New(
			s,
			&rowlock.Config{
				TTL: 4 * time.Second, PollMin: time.Minute, PollMax: 2 * time.Minute,
			},
		)
		r.do(err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	here, there := open(r.Cluster), open(r.another().Cluster)
	first, err := here.Lock(t.Context(), "k")
	r.do(err)
	got := make(chan *rowlock.Lock, 1)
	go func() {
		l, err := there.Lock(t.Context(), "k")
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	select {
	case <-time.After(6 * time.Second): // longer than the first etcd lease of the lock
	case <-first.Context().Done():
		t.Fatalf("lost: %v", context.Cause(first.Context()))
	case <-got:
		t.Fatal("granted twice")
	}
	r.do(first.Unlock(t.Context()))
	began := time.Now()
	second := <-got
	// A poll would find it after 50 s at the earliest.
	if waited := time.Since(began); second == nil || waited > 20*time.Second ||
		second.Token() <= first.Token() {
		t.Errorf("the waiter has %+v after %s", second, waited)
	}
}
