package transition

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// OldLock is the lock that is left.
type OldLock interface {
	// Lock takes the lock on key as old processes do. Without wait its error wraps lease.ErrHeld if
	// another holds it.
	Lock(ctx context.Context, key string, wait bool) (OldHeld, error)
	// HeldAlone reports whether it is held by a process that is not in stage Both, as far as can be
	// told. It takes nothing.
	HeldAlone(ctx context.Context, key string) (bool, error)
}

// OldHeld is an old lock that is held.
type OldHeld interface {
	// Check keeps the lock, and returns an error if it is lost. An error that is lease.ErrUnknown
	// leaves that open.
	Check(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// unfit is an old lock that was not given what it needs.
type unfit struct{ error }

func (u unfit) Lock(context.Context, string, bool) (OldHeld, error) { return nil, u.error }

func (u unfit) HeldAlone(context.Context, string) (bool, error) { return false, u.error }

// unless returns l, or what says that an argument of a function is nil.
func unless(isNil bool, function string, l OldLock) OldLock {
	if isNil {
		return unfit{fmt.Errorf("%w: transition.%s: an argument is nil", lease.ErrConfig, function)}
	}
	return l
}

// checkEvery is between two looks at an old lock. within is how long one may take, or its release: a
// session of which that is given up ends.
const checkEvery, within = 300 * time.Millisecond, 10 * time.Second

// Lock is what a stage holds of a key.
type Lock struct {
	key  string
	log  *slog.Logger
	ours *rowlock.Lock
	old  OldHeld

	stop chan struct{}
	once sync.Once // closes stop
	done sync.WaitGroup

	mu      sync.Mutex
	oldLost error
}

// Ours is rowlock's lock, to fence with. Its Context ends when it is lost or unlocked.
func (l *Lock) Ours() *rowlock.Lock { return l.ours }

// OldLost says why the old lock was lost, if that is known. Ours is kept: it holds against all
// processes but those that take the old lock alone, which now may have it.
func (l *Lock) OldLost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldLost
}

// keep looks after the old lock until it is lost.
func (l *Lock) keep() {
	for tick := time.Tick(checkEvery); ; {
		select {
		case <-l.stop:
			return
		case <-tick:
		}
		ctx, cancel := context.WithTimeout(context.Background(), within)
		err := l.old.Check(ctx)
		cancel()
		if err == nil || oneline.Is(err, lease.ErrUnknown) {
			continue
		}
		err = fmt.Errorf("%w: transition: the old lock on %q: %w", lease.ErrLost, l.key, err)
		l.mu.Lock()
		l.oldLost = err
		l.mu.Unlock()
		l.log.LogAttrs(context.Background(), slog.LevelWarn, "rowlock: transition: the old lock was lost, ours is kept",
			slog.String("key", l.key), slog.Any("error", err))
		return
	}
}

// Unlock releases the old lock and then ours, so that the next process in stage Both finds the old
// one free, also if ctx has ended. Its error is that of ours, which protects what the lock is for.
func (l *Lock) Unlock(ctx context.Context) error {
	calm := false
	defer func() {
		if !calm { // the old lock has panicked
			_ = l.ours.Unlock(ctx)
		}
	}()
	if !isnil.Value(l.old) {
		l.once.Do(func() { l.unlockOld(ctx) })
	}
	calm = true
	return l.ours.Unlock(ctx)
}

func (l *Lock) unlockOld(ctx context.Context) {
	close(l.stop)
	l.done.Wait()
	if ctx == nil { // ours says so
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := l.old.Unlock(ctx); err != nil && l.OldLost() == nil {
		l.log.LogAttrs(ctx, slog.LevelWarn, "rowlock: transition: the old lock could not be released",
			slog.String("key", l.key), slog.Any("error", err))
	}
}
