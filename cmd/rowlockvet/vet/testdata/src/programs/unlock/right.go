package unlock

import (
	"context"
	"errors"
	"log"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/semaphore"
)

type service struct {
	locks *rowlock.Client
	held  *rowlock.Lock
}

func deferred(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "k")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	return work(l.Context())
}

func joined(ctx context.Context, locks *rowlock.Client) (err error) {
	l, err := locks.LockAll(ctx, []string{"a", "b"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	return work(ctx)
}

func everyPath(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.TryLock(ctx, "k")
	if errors.Is(err, rowlock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := work(ctx); err != nil {
		_ = l.UnlockNow(ctx)
		return err
	}
	return l.Unlock(ctx)
}

func bySwitchOfTheError(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.TryLock(ctx, "k")
	switch err {
	case nil:
		defer l.Unlock(ctx)
	case rowlock.ErrHeld:
		return nil
	default:
		return err
	}
	return work(ctx)
}

func bySwitchOfTrue(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.TryLock(ctx, "k")
	switch true {
	case err != nil:
		return err
	}
	return l.Unlock(ctx)
}

func bySwitch(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.TryLock(ctx, "k")
	switch {
	case err == nil:
		defer l.Unlock(ctx)
	case err == rowlock.ErrHeld:
		return nil
	default:
		return err
	}
	return work(ctx)
}

func returned(ctx context.Context, locks *rowlock.Client) (*rowlock.Lock, error) {
	l, err := locks.Lock(ctx, "k")
	if err != nil {
		return nil, err
	}
	return l, nil
}

func named(ctx context.Context, locks *rowlock.Client) (l *rowlock.Lock, err error) {
	l, err = locks.Lock(ctx, "k")
	return
}

func (s *service) stored(ctx context.Context) (err error) {
	s.held, err = s.locks.Lock(ctx, "k")
	return err
}

func (s *service) storedLater(ctx context.Context) error {
	l, err := s.locks.Lock(ctx, "k")
	if err != nil {
		return err
	}
	s.held = l
	return nil
}

func passedOn(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "k")
	if err != nil || l == nil {
		return err
	}
	go finish(ctx, l)
	return nil
}

func finish(ctx context.Context, l *rowlock.Lock) { _ = l.Unlock(ctx) }

func cleanup(ctx context.Context, locks *rowlock.Client, later func(func(context.Context) error)) {
	l, err := locks.Lock(ctx, "k")
	if err != nil {
		log.Fatal(err)
	}
	later(l.Unlock)
}

func before(ctx context.Context, locks *rowlock.Client) (err error) {
	var l *rowlock.Lock
	defer func() {
		if l != nil {
			_ = l.Unlock(ctx)
		}
	}()
	l, err = locks.Lock(ctx, "k")
	return err
}

func rounds(ctx context.Context, locks *rowlock.Client) error {
	for {
		l, err := locks.TryLock(ctx, "k")
		if err != nil {
			continue
		}
		_ = work(ctx)
		if err := l.Unlock(ctx); err != nil {
			return err
		}
	}
}

func permitReturned(ctx context.Context, sem *semaphore.Semaphore) error {
	p, err := sem.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	return sem.Release(ctx, p)
}

func lost(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "k")
	if err != nil {
		return err
	}
	select {
	case <-l.Context().Done():
		return nil
	case <-ctx.Done():
		return l.Unlock(ctx)
	}
}

func closed(ctx context.Context, locks *rowlock.Client) error {
	defer locks.Close()
	l, err := locks.Lock(ctx, "k")
	if err != nil {
		return err
	}
	return work(l.Context())
}

func isHeld(err error) bool { return errors.Is(err, rowlock.ErrHeld) }

func byPredicate(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.TryLock(ctx, "k")
	if isHeld(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	return work(ctx)
}

func byType(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.TryLock(ctx, "k")
	if held, ok := errors.AsType[*rowlock.HeldError](err); ok {
		log.Print(held)
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	return work(ctx)
}

func byVariable(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.TryLock(ctx, "k")
	held := errors.Is(err, rowlock.ErrHeld)
	if held {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	return work(ctx)
}
