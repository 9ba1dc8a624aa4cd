package loop

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock"
)

func deferred(ctx context.Context, locks *rowlock.Client, keys []string) error {
	for _, k := range keys {
		l, err := locks.Lock(ctx, k) // want `Lock in a loop keeps a lock for each key, .*: lock the keys together with LockAll`
		if err != nil {
			return err
		}
		defer l.Unlock(ctx)
	}
	return nil
}

func appended(ctx context.Context, locks *rowlock.Client, n int) (held []*rowlock.Lock, err error) {
	for i := 0; i < n; i++ {
		l, err := locks.RLock(ctx, fmt.Sprint("k", i)) // want `RLock in a loop .* with RLockAll`
		if err != nil {
			return held, err
		}
		held = append(held, l)
	}
	return held, nil
}

func indexed(ctx context.Context, locks *rowlock.Client, keys map[string]int) (err error) {
	held := make(map[string]*rowlock.Lock)
	for k := range keys {
		if held[k], err = locks.Lock(ctx, k); err != nil { // want `Lock in a loop`
			return err
		}
	}
	return nil
}
