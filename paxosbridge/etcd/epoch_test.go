package etcd_test

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

func TestALateOpenOfASealedEpochDoesNothing(t *testing.T) {
	r := newRig(t)
	r.do(r.Open(t.Context(), "k", 3))
	l := r.take("k", 3)
	if ok, err := r.Seal(t.Context(), l); !ok || err != nil {
		t.Fatalf("seal: %t, %v", ok, err)
	}
	for _, epoch := range []int64{1, 3} {
		r.do(r.Open(t.Context(), "k", epoch))
		r.do(r.Supersede(t.Context(), "k", epoch))
	}
	_, a, err := r.try("k", 3)
	want := paxosbridge.RecordError{
		Record: paxosbridge.Record{Key: "k", Epoch: 3, Sealed: true}, Asked: 3,
	}
	if got := (*paxosbridge.RecordError)(nil); !errors.As(err, &got) || *got != want {
		t.Errorf("acquire: %+v, %v", a, err)
	}
	r.wantRenew(l, lease.Lost)
	if row := r.row("k"); row.Held || !row.Owner.IsZero() || row.Token != l.Token {
		t.Errorf("a sealed key is shown as %+v", row)
	}
}

// Its holder relies on the lease for as long as it lasts.
func TestAnAcquireWaitsForALeaseOfAnOlderEpoch(t *testing.T) {
	r := newRig(t)
	r.do(r.Open(t.Context(), "k", 1))
	old := r.take("k", 1)
	r.do(r.Open(t.Context(), "k", 3))
	if _, a, err := r.try("k", 3); a.Granted || err != nil || a.Holder.Remaining <= 0 {
		t.Errorf("while a lease of an older epoch lasts: %+v, %v", a, err)
	}
	r.wantRenew(old, lease.Lost)
	if got := r.release(old); !got.Gone {
		t.Errorf("release: %+v", got)
	}
	if ok, err := r.Seal(t.Context(), old); ok || err != nil {
		t.Errorf("seal with a lease of an older epoch: %t, %v", ok, err)
	}
	r.expire("k")
	r.take("k", 3)
}

// The key has no other holder, but its holder has learned that the lease is lost.
func TestALeaseThatHasEndedDoesNotSeal(t *testing.T) {
	r := newRig(t)
	r.do(r.Open(t.Context(), "k", 1))
	l := r.take("k", 1)
	r.expire("k")
	if ok, err := r.Seal(t.Context(), l); ok || err != nil {
		t.Errorf("seal: %t, %v", ok, err)
	}
	r.take("k", 1)
}

func TestEpochsAboveTheLastAreRefused(t *testing.T) {
	r := newRig(t)
	for _, epoch := range []int64{-1, 1 << 23, 1<<63 - 1} {
		if err := r.Open(t.Context(), "k", epoch); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("open in epoch %d: %v", epoch, err)
		}
		if _, _, err := r.try("k", epoch); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("acquire in epoch %d: %v", epoch, err)
		}
	}
	const last = 1<<23 - 1
	r.do(r.Open(t.Context(), "k", last))
	if l := r.take("k", last); lease.Epoch(l.Token) != last || l.Token <= 0 {
		t.Errorf("token %d", l.Token)
	}
}

func TestAForeignValueIsCorrupt(t *testing.T) {
	r := newRig(t)
	for _, value := range []string{
		"", "junk", "0000000000000000x ", "000000000000000go ", "0000000000000000o x", "0000000000000000oo", "0000000000000000o 12 34 ",
	} {
		_, err := r.client.Put(t.Context(), r.prefix+"r/6b", value) // k
		r.do(err)
		_, err = r.client.Put(t.Context(), r.prefix+"h/6b", "0")
		r.do(err)
		if _, a, err := r.try("k", 0); !errors.Is(err, lease.ErrCorrupt) {
			t.Errorf("%q: %+v, %v", value, a, err)
		}
		all, err := r.Inspect(t.Context(), lease.Filter{})
		if err != nil || len(all) != 1 || !all[0].Held || !errors.Is(all[0].Err, lease.ErrCorrupt) {
			t.Errorf("inspect %q: %+v, %v", value, all, err)
		}
	}
}

func TestErrorsOfEtcdAreClassified(t *testing.T) {
	for _, c := range []struct {
		err  error
		left bool
		want string
	}{
		{rpctypes.ErrNoLeader, true, "passing"},
		{rpctypes.ErrTooManyRequests, true, "passing"},
		{rpctypes.ErrLeaseNotFound, true, "passing"},
		{rpctypes.ErrNoSpace, true, "refused"},
		{rpctypes.ErrPermissionDenied, true, "refused"},
		{rpctypes.ErrRequestTooLarge, true, "refused"},
		{rpctypes.ErrTimeout, true, "unknown"},
		{rpctypes.ErrTimeoutDueToLeaderFail, true, "unknown"},
		{rpctypes.ErrTimeoutDueToConnectionLost, true, "unknown"},
		{rpctypes.ErrStopped, true, "unknown"},
		{rpctypes.ErrLeaderChanged, true, "unknown"},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max"), true, "unknown"},
		{status.Error(codes.Unavailable, "error reading from server: EOF"), true, "unknown"},
		{status.Error(codes.Unavailable, "connection refused"), false, "passing"},
		{rpctypes.ErrPermissionDenied, false, "refused"},
		{rpctypes.ErrTimeout, false, "passing"},
		{context.DeadlineExceeded, true, "unknown"},
		{context.DeadlineExceeded, false, "passing"},
	} {
		if got := etcd.Judge(c.err, c.left); got != c.want {
			t.Errorf("%v, sent %t: %s, want %s", c.err, c.left, got, c.want)
		}
	}
}
