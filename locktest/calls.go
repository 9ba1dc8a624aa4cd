package locktest

import (
	"context"
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

func request(key string, owner lease.Owner) lease.AcquireRequest {
	return lease.AcquireRequest{Key: key, Owner: owner, TTL: ttl}
}

// acquireOne is a batch of one; the item's error is returned like the call's.
func acquireOne(ctx context.Context, s lease.Store, q lease.AcquireRequest) (lease.Acquired, error) {
	a, err := sole(s.Acquire(ctx, []lease.AcquireRequest{q}))
	if err == nil {
		err = a.Err
	}
	return a, err
}

func renewOne(ctx context.Context, s lease.Store, l lease.Lease) (lease.Renewed, error) {
	a, err := sole(s.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: ttl}}))
	if err == nil {
		err = a.Err
	}
	return a, err
}

func releaseOne(ctx context.Context, s lease.Store, l lease.Lease) (lease.Released, error) {
	a, err := sole(s.Release(ctx, []lease.Lease{l}))
	if err == nil {
		err = a.Err
	}
	return a, err
}

func sole[A any](answers []A, err error) (A, error) {
	var none A
	if err != nil {
		return none, err
	}
	if len(answers) != 1 {
		return none, fmt.Errorf("%d answers to one request", len(answers))
	}
	return answers[0], nil
}

// together runs f(0) … f(n-1) at once and returns when all have. They fail the test with Errorf,
// never Fatal.
func together(n int, f func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}
