package loop

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock"
)

func oneByOne(ctx context.Context, locks *rowlock.Client, keys []string) error {
	for _, k := range keys {
		l, err := locks.Lock(ctx, k)
		if err != nil {
			return err
		}
		if err := l.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

func theFirst(ctx context.Context, locks *rowlock.Client, keys []string) (*rowlock.Lock, error) {
	for _, k := range keys {
		l, err := locks.Lock(ctx, k)
		if err == nil {
			return l, nil
		}
	}
	return nil, rowlock.ErrHeld
}

func inAFunction(ctx context.Context, locks *rowlock.Client, keys []string) error {
	for _, k := range keys {
		err := func() error {
			l, err := locks.Lock(ctx, k)
			if err != nil {
				return err
			}
			defer l.Unlock(ctx)
			return nil
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

func oneByOneComes(ctx context.Context, locks *rowlock.Client, keys <-chan string) error {
	for k := range keys {
		l, err := locks.Lock(ctx, k)
		if err != nil {
			return err
		}
		defer l.Unlock(ctx)
	}
	return nil
}

func ofSeveralClients(ctx context.Context, clients []*rowlock.Client) error {
	for _, c := range clients {
		l, err := c.Lock(ctx, fmt.Sprintf("k of %p", c))
		if err != nil {
			return err
		}
		defer l.Unlock(ctx)
	}
	return nil
}

func started(ctx context.Context, locks *rowlock.Client, keys []string) error {
	for _, k := range keys {
		l, err := locks.Lock(ctx, k)
		if err != nil {
			return err
		}
		go func() { _ = l.Unlock(ctx) }()
	}
	return nil
}

func together(ctx context.Context, locks *rowlock.Client, keys []string) error {
	ls, err := locks.LockAll(ctx, keys)
	if err != nil {
		return err
	}
	return ls.Unlock(ctx)
}
