package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var (
	_ lease.Registry = (*Store)(nil)
	_ lease.Notifier = (*Store)(nil)
)

// hints is what the store knows of waiters. The store's mutex guards it.
type hints struct {
	registered map[string]map[lease.Owner]time.Time // until when, by key and process
	listeners  map[*listener]struct{}
	dropped    bool
}

type listener struct{ heard func(key string) }

// Register registers a process as waiting for keys. See [lease.Registry].
func (s *Store) Register(ctx context.Context, process lease.Owner, identity string, keys []string, d time.Duration) error {
	if process.IsZero() {
		return fmt.Errorf("register: %w", errZeroOwner)
	}
	_, err := each(ctx, s, keys, func(now time.Time, key string) struct{} {
		if s.registered[key] == nil {
			s.registered[key] = make(map[lease.Owner]time.Time)
		}
		s.registered[key][process] = now.Add(d)
		return struct{}{}
	})
	return err
}

// Unregister removes the registration. See [lease.Registry].
func (s *Store) Unregister(ctx context.Context, process lease.Owner, keys []string) error {
	_, err := each(ctx, s, keys, func(_ time.Time, key string) struct{} {
		if delete(s.registered[key], process); len(s.registered[key]) == 0 {
			delete(s.registered, key)
		}
		return struct{}{}
	})
	return err
}

// Awaited reports whether another process waits. See [lease.Registry].
func (s *Store) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	return each(ctx, s, keys, func(now time.Time, key string) bool { return s.awaitedLocked(now, key, process) })
}

func (s *Store) awaitedLocked(now time.Time, key string, but lease.Owner) bool {
	for process, until := range s.registered[key] {
		if process != but && now.Before(until) {
			return true
		}
	}
	return s.headLocked(now, key, but) != nil
}

// Listen hears every announcement to this store until ctx ends. See [lease.Notifier].
func (s *Store) Listen(ctx context.Context, heard func(key string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l := &listener{heard}
	s.mu.Lock()
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, l)
	}()
	heard("")
	<-ctx.Done()
	return ctx.Err()
}

// Announce notifies every listener before it returns. See [lease.Notifier].
func (s *Store) Announce(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, l := range s.listening() {
		for _, key := range keys {
			l.heard(key)
		}
	}
	return nil
}

// listening returns the listeners. They are called without the mutex, because heard may call the
// store.
func (s *Store) listening() []*listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return nil
	}
	return slices.Collect(maps.Keys(s.listeners))
}

// DropHints loses every notification from now on, or none. Waiters then depend on polling, as on a
// database whose notifications are lost.
func (s *Store) DropHints(drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = drop
}
