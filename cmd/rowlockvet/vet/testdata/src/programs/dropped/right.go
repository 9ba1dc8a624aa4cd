package dropped

import (
	"context"
	"errors"
	"sync"

	"github.com/rowlockdb/rowlock"
)

func right(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "k")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	if _, err := locks.TryLock(ctx, "k"); !errors.Is(err, rowlock.ErrHeld) {
		return errors.New("two have it")
	}
	var held *rowlock.HeldError
	_, err = locks.TryLock(ctx, "k")
	if !errors.As(err, &held) {
		return errors.New("two have it")
	}
	var all rowlock.Locks
	all.Lock("k") // one of several that are held
	var mu sync.Mutex
	mu.Lock()
	defer mu.Unlock()
	//rowlockvet:ignore the process ends here, and the lease with it
	locks.Lock(ctx, "k")
	locks.Lock(ctx, "k") //rowlockvet:ignore the same, on the line
	return nil
}
