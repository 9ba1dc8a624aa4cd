package cleanup

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// maxKeys bounds how many keys are watched.
	maxKeys = 1024
	// timeout bounds one eviction, beyond the store's own bounds.
	timeout = 5 * time.Second
)

// Evictions notes since when keys have been found expired and locked by another transaction, and
// has the store end the session that locks the row: its client may have vanished, and the server
// may not learn that for hours. Its fields are set before its first use.
type Evictions struct {
	Store *adapter.Store
	// After is how long a key stays expired and locked before a session is ended. 0 or less: for ever.
	After time.Duration
	Calls *Calls
	Log   *slog.Logger
	// Evicted is called with each session that was ended, or with the error why it was not. ctx has
	// the values of the attempt's that found the key. May be nil.
	Evicted func(ctx context.Context, key string, session int64, err error)
	// Freed is called with a key that may be free now.
	Freed func(key string)

	n    atomic.Int64 // of keys: without any, Forget costs one load
	mu   sync.Mutex
	keys map[string]*lockedKey
}

// lockedKey is a key that every attempt since has found expired and locked.
type lockedKey struct {
	last time.Time
	due  time.Time // of the next eviction
	busy bool      // it is under way
	why  string    // the last one has freed nothing
}

// Found notes how much of its lease the holder of key has left, as an attempt has found. A holder
// with time left is not evicted. An eviction goes on when ctx, the attempt's, has ended.
func (w *Evictions) Found(ctx context.Context, key string, remaining time.Duration) {
	switch {
	case w.After <= 0 || w.Store.Evictor == nil:
	case remaining > 0:
		w.Forget(key)
	case w.isDue(key, time.Now()) && w.Calls.Enter(): // Close waits for the eviction
		go w.evict(context.WithoutCancel(ctx), key)
	}
}

// Forget ends the watch of a key that is not locked.
func (w *Evictions) Forget(key string) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.keys, key)
	w.n.Store(int64(len(w.keys)))
}

// isDue reports true to one caller, which must then evict.
func (w *Evictions) isDue(key string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keys[key]
	if k == nil {
		if len(w.keys) >= maxKeys && !w.makeRoom(now) {
			return false
		}
		if w.keys == nil {
			w.keys = make(map[string]*lockedKey)
		}
		k = &lockedKey{due: now.Add(w.After)}
		w.keys[key] = k
		w.n.Store(int64(len(w.keys)))
	}
	k.last = now
	if k.busy || now.Before(k.due) {
		return false
	}
	k.busy = true
	return true
}

// makeRoom forgets keys that no caller has asked for recently.
func (w *Evictions) makeRoom(now time.Time) bool {
	for key, k := range w.keys {
		if !k.busy && now.Sub(k.last) > 2*w.After {
			delete(w.keys, key)
		}
	}
	return len(w.keys) < maxKeys
}

// evict has the sessions ended that lock key's row, tells of them, and has the waiters bid again.
func (w *Evictions) evict(ctx context.Context, key string) {
	defer w.Calls.Leave()
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := w.Store.Evict(within, key, w.After)
	w.again(key, len(found) > 0 || err != nil)
	if err != nil {
		w.tell(ctx, key, 0, fmt.Errorf("rowlock: %q is expired and its row locked, "+
			"and the session that locks it could not be ended: %w", key, err))
	}
	for _, s := range found {
		var why error
		switch {
		case s.Ended:
		case s.Prepared != "":
			why = fmt.Errorf("%w: %q is expired and its row locked by %v", lease.ErrBusy, key, s)
		default:
			why = fmt.Errorf("%w: %q is expired and its row locked by %v; only that user or an administrator "+
				"can end it", lease.ErrPrivilege, key, s)
		}
		w.tell(ctx, key, s.Session, why)
	}
	w.Freed(key)
}

// again fixes when the next eviction is due: soon if no session was found, because its transaction
// may have been too young.
func (w *Evictions) again(key string, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.keys[key]; k != nil {
		pause := w.After
		if !found {
			pause = min(pause, time.Second)
		}
		k.busy, k.due = false, time.Now().Add(pause)
	}
}

// note keeps why a key is still locked, for those that ask for it.
func (w *Evictions) note(key string, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.keys[key]; k != nil {
		k.why = strings.TrimPrefix(why.Error(), "rowlock: ")
	}
}

// Why says what an eviction has found to keep an expired key locked, or nothing.
func (w *Evictions) Why(key string) string {
	if w == nil || w.n.Load() == 0 {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.keys[key]; k != nil {
		return k.why
	}
	return ""
}

func (w *Evictions) tell(ctx context.Context, key string, session int64, err error) {
	if err != nil {
		w.note(key, err)
		w.Log.WarnContext(ctx, "rowlock: an expired key stays locked by a transaction",
			slog.String("key", key), slog.Any("error", err))
	} else {
		w.Log.WarnContext(ctx, "rowlock: ended the session whose transaction kept an expired key locked",
			slog.String("key", key), slog.Int64("session", session))
	}
	if w.Evicted != nil {
		w.Evicted(ctx, key, session, err)
	}
}
