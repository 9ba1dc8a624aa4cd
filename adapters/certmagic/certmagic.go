package certrowlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/rowlockdb/rowlock"
)

// Storage is a certmagic.Storage, TryLocker and LockLeaseRenewer: the storage that it wraps keeps
// the certificates, and rowlock the locks.
type Storage struct {
	certmagic.Storage
	locks *rowlock.Client
	opts  []rowlock.Option

	mu   sync.Mutex
	held map[string]*rowlock.Lock
}

// New returns a Storage whose locks have the options. All processes of the cluster must have it.
func New(storage certmagic.Storage, locks *rowlock.Client, opts ...rowlock.Option) (*Storage, error) {
	if storage == nil || locks == nil {
		return nil, fmt.Errorf("%w: certmagic: the storage or the client is nil", rowlock.ErrConfig)
	}
	return &Storage{Storage: storage, locks: locks, opts: opts, held: make(map[string]*rowlock.Lock)}, nil
}

// Key is the key of a name: "certmagic/" and the name, or its SHA-256 if it is too long for a key.
func Key(name string) string {
	if len(name) > 200 || name == "" {
		sum := sha256.Sum256([]byte(name))
		name = "sha256/" + hex.EncodeToString(sum[:])
	}
	return "certmagic/" + name
}

// Lock waits for a name as long as ctx lasts, in this process too.
func (s *Storage) Lock(ctx context.Context, name string) error {
	return s.got(name, func() (*rowlock.Lock, error) { return s.locks.Lock(ctx, Key(name), s.opts...) })
}

// TryLock reports false if a name is locked, by whichever process.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	err := s.got(name, func() (*rowlock.Lock, error) { return s.locks.TryLock(ctx, Key(name), s.opts...) })
	if errors.Is(err, rowlock.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

func (s *Storage) got(name string, lock func() (*rowlock.Lock, error)) error {
	l, err := lock()
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.held[name] // that it was granted again says that this one is lost
	s.held[name] = l
	s.mu.Unlock()
	if old != nil {
		_ = old.Unlock(context.Background())
	}
	return nil
}

// Unlock releases a name. Its error wraps ErrLost if the lock was lost before: what was done under
// it may have met another process's work.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	l := s.held[name]
	delete(s.held, name)
	s.mu.Unlock()
	if l == nil {
		return notHeld(name)
	}
	return l.Unlock(ctx)
}

// RenewLockLease reports whether the lock is held still. The client renews it by itself, for as long
// as this process lives, so that no duration need be asked for.
func (s *Storage) RenewLockLease(_ context.Context, name string, _ time.Duration) error {
	l, ok := s.Held(name)
	if !ok {
		return notHeld(name)
	}
	return l.Progress()
}

// Held returns the lock on a name, for its Token and Context, while this Storage has it.
func (s *Storage) Held(name string) (*rowlock.Lock, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.held[name]
	return l, ok
}

func notHeld(name string) error {
	return fmt.Errorf("%w: certmagic: this Storage does not hold %q; unlock what Lock or TryLock of the same "+
		"Storage got, once", rowlock.ErrUnlocked, name)
}
