package migraterowlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/rowlockdb/rowlock"
)

// waits is how long Lock waits. migrate.Migrate gives up after 15 s, and a lock that came later
// would be unlocked by no call.
const waits = 12 * time.Second

// Driver is a database.Driver that migrates under a lock of rowlock's.
type Driver struct {
	database.Driver
	locks *rowlock.Client
	key   string
	opts  []rowlock.Option

	mu   sync.Mutex
	lock *rowlock.Lock
}

// New returns a Driver that has the lock on key, and the own lock of driver, while it migrates. Give
// it to migrate.NewWithInstance or NewWithDatabaseInstance, and leave LockTimeout as it is or make
// it longer. On SQLite, where no lock is renewed while a migration writes, give it
// rowlock.TTL(2*time.Minute).
func New(driver database.Driver, locks *rowlock.Client, key string, opts ...rowlock.Option) (*Driver, error) {
	if driver == nil || locks == nil {
		return nil, fmt.Errorf("%w: migrate: the driver or the client of %q is nil", rowlock.ErrConfig, key)
	}
	return &Driver{Driver: driver, locks: locks, key: key, opts: opts}, nil
}

// Open opens the driver that is wrapped, for a URL, and returns it under the same lock.
func (d *Driver) Open(url string) (database.Driver, error) {
	driver, err := d.Driver.Open(url)
	if err != nil {
		return nil, err
	}
	return New(driver, d.locks, d.key, d.opts...)
}

// Lock waits for up to 12 s for the lock, and takes the driver's own then, so that processes without
// this Driver keep out. The error wraps database.ErrLocked if another process migrates, and if both
// took longer.
func (d *Driver) Lock() error {
	if _, held := d.Held(); held {
		return fmt.Errorf("%w: this Driver holds %q already", database.ErrLocked, d.key)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waits)
	defer cancel()
	lock, err := d.locks.Lock(ctx, d.key, d.opts...)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %q is held by another process: try again when it has migrated: %w",
			database.ErrLocked, d.key, err)
	}
	if err != nil {
		return err
	}
	err = d.Driver.Lock()
	if err == nil && ctx.Err() != nil { // migrate has given up, or is about to: it would unlock neither
		err = errors.Join(fmt.Errorf("%w: the driver's own lock came too late", database.ErrLocked), d.Driver.Unlock())
	}
	if err != nil {
		return errors.Join(err, lock.Unlock(ctx))
	}
	d.set(lock)
	return nil
}

// Unlock releases both locks. Its error, which migrate returns, wraps ErrLost if ours was lost. After
// an error a Migrate takes itself as locked for ever: make a new one, of the same Driver.
func (d *Driver) Unlock() error {
	lock, held := d.Held()
	if !held {
		return fmt.Errorf("%w: %w: migrate: this Driver does not hold %q", database.ErrNotLocked, rowlock.ErrUnlocked, d.key)
	}
	d.set(nil)
	own, err := d.Driver.Unlock(), lock.Unlock(context.Background())
	if errors.Is(err, rowlock.ErrUnknown) { // no reason for a new Migrate: the client tries it again
		return own
	}
	return errors.Join(own, err)
}

// Run runs a migration unless the lock is lost.
func (d *Driver) Run(migration io.Reader) error {
	if err := d.still("run the migration"); err != nil {
		return err
	}
	return d.Driver.Run(migration)
}

// SetVersion writes the version unless the lock is lost: after a migration in which it was lost, the
// version stays dirty, because another process may have written its own.
func (d *Driver) SetVersion(version int, dirty bool) error {
	if err := d.still(fmt.Sprintf("set version %d", version)); err != nil {
		return err
	}
	return d.Driver.SetVersion(version, dirty)
}

// Drop drops everything unless the lock is lost.
func (d *Driver) Drop() error {
	if err := d.still("drop everything"); err != nil {
		return err
	}
	return d.Driver.Drop()
}

// Held returns the lock while this Driver has it.
func (d *Driver) Held() (*rowlock.Lock, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lock, d.lock != nil
}

func (d *Driver) set(lock *rowlock.Lock) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lock = lock
}

// still returns an error unless the lock is held.
func (d *Driver) still(what string) error {
	lock, held := d.Held()
	if !held {
		return fmt.Errorf("%w: %w: migrate: %s without the lock on %q; call Lock first",
			database.ErrNotLocked, rowlock.ErrUnlocked, what, d.key)
	}
	if err := lock.Progress(); err != nil {
		return fmt.Errorf("rowlock: migrate: did not %s: the lock has ended, and another process may migrate: look "+
			"at the version before you go on: %w", what, err)
	}
	return nil
}
