package wlock

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// linger is how long a key is watched after it was found held.
const linger = 30 * time.Second

type listener struct{ heard func(key string) }

// Listen calls heard when a key that Inspect has found held by another process may be free: while a
// caller listens, such keys are watched.
func (s *Store) Listen(ctx context.Context, heard func(key string)) error {
	if s.c.ctx.Err() != nil {
		return errClosed
	}
	l := &listener{heard}
	s.mu.Lock()
	s.listeners[l] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, l)
	}()
	heard("")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.c.ctx.Done():
		return lease.ErrClosed
	}
}

// Announce does nothing: servers tell those that watch.
func (s *Store) Announce(ctx context.Context, _ []string) error { return ctx.Err() }

// sight is a lock of another process.
type sight struct {
	token   lease.Token
	since   time.Time // when it was first seen
	watched bool
}

// follow notes that a key is held by another process, and since when, and has it watched while a
// caller listens. One event ends the watch: the next poll that finds the key held begins another.
func (s *Store) follow(key string, token lease.Token) (age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.sights[key]
	if at.token != token {
		if len(s.sights) > 1000 { // those that are watched end by themselves
			clear(s.sights)
		}
		at.token, at.since = token, time.Now()
	}
	watch := len(s.listeners) > 0 && !at.watched
	at.watched = at.watched || watch
	if s.sights[key] = at; watch {
		s.c.after(func() { s.watch(key) })
	}
	return time.Since(at.since)
}

func (s *Store) watch(key string) {
	ctx, cancel := context.WithTimeout(s.c.ctx, linger)
	defer cancel()
	err := s.c.Watch(ctx, wireKey(key))
	s.mu.Lock()
	at := s.sights[key]
	at.watched = false
	s.sights[key] = at
	listeners := slices.Collect(maps.Keys(s.listeners))
	s.mu.Unlock()
	if err == nil {
		for _, l := range listeners {
			l.heard(key)
		}
	}
}
