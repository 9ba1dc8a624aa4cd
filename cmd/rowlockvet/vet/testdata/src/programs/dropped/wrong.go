package dropped

import (
	"context"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/semaphore"
)

type locker interface {
	Lock(ctx context.Context, key string, opts ...rowlock.Option) (*rowlock.Lock, error)
}

func wrong(ctx context.Context, locks *rowlock.Client, own locker, sem *semaphore.Semaphore) error {
	locks.Lock(ctx, "k")                               // want `the result of Lock is dropped, .* defer its Unlock`
	_, _ = locks.TryLock(ctx, "k")                     // want `the result of TryLock is dropped`
	go locks.LockAll(ctx, []string{"a", "b"})          // want `the result of LockAll is dropped`
	defer locks.RLock(ctx, "k")                        // want `the result of RLock is dropped`
	sem.Acquire(ctx, 1)                                // want `the result of Acquire is dropped, .* defer its Release`
	own.Lock(ctx, "k")                                 // want `the result of Lock is dropped`
	var _, err = locks.Lock(ctx, "k")                  // want `the result of Lock is dropped`
	if _, err := locks.TryLock(ctx, "k"); err != nil { // want `the result of TryLock is dropped`
		return err
	}
	//rowlockvet:ignore
	locks.Lock(ctx, "k") // want `the result of Lock is dropped`
	return err
}
