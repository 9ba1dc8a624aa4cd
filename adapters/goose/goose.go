package gooserowlock

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"github.com/pressly/goose/v3"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/schema"
)

// Up runs what is pending in one process at a time, by schema.Alone, which makes rowlock's tables
// first. If the lock is lost, the ctx of the migration that runs ends, its transaction is rolled
// back, and the error wraps ErrLost. A migration in Go can fence: rowlock.FromContext of its ctx.
// The provider must have no Locker.
func Up(
	ctx context.Context, db dialect.DB, d dialect.Dialect, p *goose.Provider, sets ...schema.Set,
) (results []*goose.MigrationResult, err error) {
	if p == nil {
		return nil, fmt.Errorf("%w: goose: the provider is nil; make one with goose.NewProvider", rowlock.ErrConfig)
	}
	err = schema.Alone(ctx, db, d, func(ctx context.Context) error {
		results, err = p.Up(ctx)
		return err
	}, sets...)
	return results, err
}

// Locker is a lock.SessionLocker and a lock.Locker of goose.
type Locker struct {
	locks *rowlock.Client
	key   string
	opts  []rowlock.Option

	mu   sync.Mutex
	held []held // in the order of their grants: of two, the first has lost the lock
}

// held is a lock of the *sql.Conn or *sql.DB that goose has given.
type held struct {
	session any
	lock    *rowlock.Lock
}

func of(session any) func(held) bool { return func(h held) bool { return h.session == session } }

// NewLocker returns a Locker on a key. The client needs connections beside the one that goose holds
// while it waits: a pool of four, or a pool of its own.
func NewLocker(locks *rowlock.Client, key string, opts ...rowlock.Option) *Locker {
	return &Locker{locks: locks, key: key, opts: opts}
}

// SessionLock waits for the lock, as long as ctx lasts.
func (l *Locker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	l.mu.Lock()
	again := slices.ContainsFunc(l.held, of(conn))
	l.mu.Unlock()
	if again {
		return fmt.Errorf("%w: goose: this session holds %q already; unlock it first", rowlock.ErrDeadlock, l.key)
	}
	return l.lock(ctx, conn, conn == nil)
}

// SessionUnlock releases what SessionLock got for the same connection. Its error, which goose
// returns, wraps ErrLost if the lock was lost while goose migrated.
func (l *Locker) SessionUnlock(ctx context.Context, conn *sql.Conn) error { return l.unlock(ctx, conn) }

// Lock is SessionLock for a pool, of which several providers may wait.
func (l *Locker) Lock(ctx context.Context, db *sql.DB) error { return l.lock(ctx, db, db == nil) }

// Unlock is SessionUnlock for a pool.
func (l *Locker) Unlock(ctx context.Context, db *sql.DB) error { return l.unlock(ctx, db) }

// Held returns the lock while this process migrates: for a migration in Go to fence.
func (l *Locker) Held() (*rowlock.Lock, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) == 0 {
		return nil, false
	}
	return l.held[0].lock, true // no migration after a loss may fence with the next holder's token
}

func (l *Locker) lock(ctx context.Context, session any, isNil bool) error {
	if isNil || l.locks == nil {
		return fmt.Errorf("%w: goose: the session or the client of %q is nil", rowlock.ErrConfig, l.key)
	}
	lock, err := l.locks.Lock(ctx, l.key, l.opts...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.held = append(l.held, held{session, lock})
	l.mu.Unlock()
	return nil
}

func (l *Locker) unlock(ctx context.Context, session any) error {
	var lock *rowlock.Lock
	l.mu.Lock()
	if i := slices.IndexFunc(l.held, of(session)); i >= 0 {
		lock = l.held[i].lock
		l.held = slices.Delete(l.held, i, i+1)
	}
	l.mu.Unlock()
	if lock == nil {
		return fmt.Errorf("%w: goose: this session does not hold %q; unlock the connection or pool that was locked",
			rowlock.ErrUnlocked, l.key)
	}
	return lock.Unlock(ctx)
}
