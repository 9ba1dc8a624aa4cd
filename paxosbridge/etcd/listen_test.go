package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func TestAListenerHearsReleasesAndExpiries(t *testing.T) {
	r := newRig(t)
	heard := make(chan string, 100)
	done := make(chan error, 1)
	go func() { done <- r.Listen(context.Background(), func(key string) { heard <- key }) }()
	next := func() string {
		t.Helper()
		select {
		case key := <-heard:
			return key
		case <-time.After(patience):
			t.Fatal("nothing is heard")
			return ""
		}
	}
	if got := next(); got != "" {
		t.Errorf("first %q is heard", got)
	}
	l := r.take("released", 0)
	to := lease.AcquireRequest{Key: "released", Owner: lease.NewOwner(), TTL: ttl}
	a, err := r.HandOver(t.Context(), []lease.HandOver{{From: l, To: to}})
	r.do(err)
	r.do(r.Open(t.Context(), "sealed", 1))
	s := r.take("sealed", 1)
	r.release(lease.Lease{Key: "released", Owner: to.Owner, Token: a[0].Token})
	_, err = r.Seal(t.Context(), s)
	r.do(err)
	q := lease.AcquireRequest{Key: "ended", Owner: lease.NewOwner(), TTL: 100 * time.Millisecond}
	_, err = r.Acquire(t.Context(), []lease.AcquireRequest{q})
	r.do(err)
	// And no event for a grant, a hand-over or a renewal.
	for _, want := range []string{"released", "sealed", "ended"} {
		if got := next(); got != want {
			t.Errorf("%q is heard, want %q", got, want)
		}
	}
	r.do(r.Close())
	if err := <-done; !errors.Is(err, lease.ErrClosed) {
		t.Errorf("listen on a cluster that was closed: %v", err)
	}
	if _, _, err := r.try("k", 0); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("acquire on a cluster that was closed: %v", err)
	}
	r.do(r.Close())
}
