package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var (
	_ lease.Interest = (*Store)(nil)
	_ lease.Notifier = (*Store)(nil)
)

// hints is what the store knows of those who wait. All of it is guarded by the store's mutex.
type hints struct {
	interest map[string]map[lease.Owner]time.Time // until when, by key and process
	ears     map[*ear]struct{}
	dropped  bool
}

type ear struct{ heard func(key string) }

// Await notes that a process waits for keys. See [lease.Interest].
func (s *Store) Await(ctx context.Context, process lease.Owner, keys []string, d time.Duration) error {
	if process.IsZero() {
		return fmt.Errorf("await: %w", errNobody)
	}
	_, err := each(ctx, s, keys, func(now time.Time, key string) struct{} {
		if s.interest[key] == nil {
			s.interest[key] = make(map[lease.Owner]time.Time)
		}
		s.interest[key][process] = now.Add(d)
		return struct{}{}
	})
	return err
}

// Desist takes that back. See [lease.Interest].
func (s *Store) Desist(ctx context.Context, process lease.Owner, keys []string) error {
	_, err := each(ctx, s, keys, func(_ time.Time, key string) struct{} {
		if delete(s.interest[key], process); len(s.interest[key]) == 0 {
			delete(s.interest, key)
		}
		return struct{}{}
	})
	return err
}

// Awaited reports whether any other process waits. See [lease.Interest].
func (s *Store) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	return each(ctx, s, keys, func(now time.Time, key string) bool { return s.awaitedLocked(now, key, process) })
}

func (s *Store) awaitedLocked(now time.Time, key string, but lease.Owner) bool {
	for process, until := range s.interest[key] {
		if process != but && now.Before(until) {
			return true
		}
	}
	return s.headLocked(now, key, but) != nil
}

// Listen hears what anybody announces to this store, until ctx ends. See [lease.Notifier].
func (s *Store) Listen(ctx context.Context, heard func(key string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := &ear{heard}
	s.mu.Lock()
	s.ears[e] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ears, e)
	}()
	heard("")
	<-ctx.Done()
	return ctx.Err()
}

// Announce tells every listener before it returns. See [lease.Notifier].
func (s *Store) Announce(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, e := range s.listening() {
		for _, key := range keys {
			e.heard(key)
		}
	}
	return nil
}

// listening returns who is to be told, for that to happen without the mutex: heard may call the
// store.
func (s *Store) listening() []*ear {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return nil
	}
	ears := make([]*ear, 0, len(s.ears))
	for e := range s.ears {
		ears = append(ears, e)
	}
	return ears
}

// DropHints loses every notification from now on, or none. Waiters then rest on their polls, as
// they must on a database whose notifications are lost.
func (s *Store) DropHints(drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = drop
}

// WakeAll tells every listener that any key may have been released, as after a lost connection.
func (s *Store) WakeAll() {
	for _, e := range s.listening() {
		e.heard("")
	}
}
