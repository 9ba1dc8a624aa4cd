package rowlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// mostLocked bounds how many keys are watched for an eviction.
	mostLocked = 1024
	// evictTimeout bounds one eviction, beyond what the store takes.
	evictTimeout = 5 * time.Second
)

// evictions knows since when keys have been found expired and locked by another transaction, and has the store end the session that has
// the row: its client may have vanished, and the server may not hear of that for hours.
type evictions struct {
	c     *Client
	store lease.Evictor // nil: off

	n    atomic.Int64 // of keys: while there are none, a look costs one load
	mu   sync.Mutex
	keys map[string]*lockedKey
}

// lockedKey is a key that was found expired and locked at every look since.
type lockedKey struct {
	last time.Time
	due  time.Time // when something is to be done about it
	busy bool      // and is being done
}

func (e *evictions) start(c *Client) {
	e.c, e.keys = c, make(map[string]*lockedKey)
	if c.cfg.EvictAfter > 0 {
		e.store, _ = seam.As[lease.Evictor](c.store)
	}
}

// saw takes note of what an attempt has found. A holder whose lease has time left is nobody to evict.
func (e *evictions) saw(key string, remaining time.Duration) {
	switch {
	case e.store == nil:
	case remaining > 0:
		e.forget(key)
	case e.isDue(key, time.Now()):
		if e.c.janitor.enter() { // Close waits for it
			go e.evict(key)
		}
	}
}

// forget is for a key that is not locked, or no more.
func (e *evictions) forget(key string) {
	if e.n.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
	e.n.Store(int64(len(e.keys)))
}

// isDue reports true to one caller, who is to have the key's row freed.
func (e *evictions) isDue(key string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.keys[key]
	if k == nil {
		if len(e.keys) >= mostLocked && !e.makeRoom(now) {
			return false
		}
		k = &lockedKey{due: now.Add(e.c.cfg.EvictAfter)}
		e.keys[key] = k
		e.n.Store(int64(len(e.keys)))
	}
	k.last = now
	if k.busy || now.Before(k.due) {
		return false
	}
	k.busy = true
	return true
}

// makeRoom forgets keys that nobody has asked for since long.
func (e *evictions) makeRoom(now time.Time) bool {
	for key, k := range e.keys {
		if !k.busy && now.Sub(k.last) > 2*e.c.cfg.EvictAfter {
			delete(e.keys, key)
		}
	}
	return len(e.keys) < mostLocked
}

// evict has whoever is in the way ended, tells of it, and has those who wait bid again.
func (e *evictions) evict(key string) {
	defer e.c.janitor.leave()
	ctx, cancel := context.WithTimeout(context.Background(), evictTimeout)
	defer cancel()
	found, err := e.store.Evict(ctx, key, e.c.cfg.EvictAfter)
	if errors.Is(err, lease.ErrUnsupported) {
		err = nil // a key that has moved, or a store that is used with a single lane
	}
	e.again(key, len(found) > 0 || err != nil)
	if err != nil {
		e.tell(key, 0, fmt.Errorf("rowlock: %q is expired and its row locked, and the session that has it could not be ended: %w", key, err))
	}
	for _, s := range found {
		if s.Ended {
			e.tell(key, s.Session, nil)
			continue
		}
		e.tell(key, s.Session, fmt.Errorf("%w: %q is expired and its row locked by session %d of the user %q, which only that user or an administrator can end",
			lease.ErrPrivilege, key, s.Session, s.User))
	}
	e.c.call(key)
}

// again fixes when the next attempt may be made: soon if nobody was found, for a transaction may have been too young.
func (e *evictions) again(key string, found bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if k := e.keys[key]; k != nil {
		pause := e.c.cfg.EvictAfter
		if !found {
			pause = min(pause, time.Second)
		}
		k.busy, k.due = false, time.Now().Add(pause)
	}
}

func (e *evictions) tell(key string, session int64, err error) {
	log := e.c.cfg.Logger
	if err != nil {
		log.LogAttrs(context.Background(), slog.LevelWarn, "rowlock: an expired key stays locked by a transaction", slog.String("key", key), slog.Any("error", err))
	} else {
		log.LogAttrs(context.Background(), slog.LevelWarn, "rowlock: ended the session whose transaction kept an expired key locked",
			slog.String("key", key), slog.Int64("session", session))
	}
	if h := e.c.cfg.Hooks.Evicted; h != nil {
		h(key, session, err)
	}
}
