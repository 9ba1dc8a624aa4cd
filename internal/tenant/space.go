// Package tenant keeps the keys of several tenants of one client apart, and limits each.
package tenant

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/rowlockdb/rowlock/lease"
)

// Separator ends a name in a key, and is in no name.
const Separator = "/"

// Quota limits a space. 0 is no limit.
type Quota struct {
	Held, Waiting int
}

// Space is the keys that begin with a name. nil is all keys.
type Space struct {
	prefix        string
	quota         Quota
	up            *Space
	held, waiting atomic.Int64
}

// Spaces are those of one client, each once: all callers of one name share its numbers. A space
// that no client, call or lock refers to has no numbers, and is forgotten: tenants come and go.
type Spaces struct {
	mu  sync.Mutex
	all map[string]weak.Pointer[Space]
}

// In returns the space of name within up.
func (s *Spaces) In(up *Space, name string, q Quota) (*Space, error) {
	prefix := up.Full(name + Separator)
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.all[prefix].Value(); there != nil {
		if there.quota != q {
			return nil, fmt.Errorf("%w: namespace %q has the quota %+v in this client already, "+
				"which is not %+v: give the same", lease.ErrConfig, name, there.quota, q)
		}
		return there, nil
	}
	if s.all == nil {
		s.all = make(map[string]weak.Pointer[Space])
	}
	space := &Space{prefix: prefix, quota: q, up: up}
	s.all[prefix] = weak.Make(space)
	runtime.AddCleanup(space, s.forget, prefix)
	return space, nil
}

// forget removes a space that is garbage, unless there is a new one of its name.
func (s *Spaces) forget(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[prefix].Value() == nil {
		delete(s.all, prefix)
	}
}

// Full is a key of the space as the store knows it.
func (s *Space) Full(key string) string {
	if s == nil {
		return key
	}
	return s.prefix + key
}

// FullAll is Full for each key, and none for "", which is no key. keys stay as they are.
func (s *Space) FullAll(keys []string) []string {
	if s == nil || len(keys) == 0 {
		return keys
	}
	full := make([]string, len(keys))
	for i, key := range keys {
		if key != "" {
			full[i] = s.prefix + key
		}
	}
	return full
}

// Own is a key of the store as its space knows it.
func (s *Space) Own(full string) string {
	if s == nil {
		return full
	}
	return strings.TrimPrefix(full, s.prefix)
}

// Hold counts n locks about to be taken, unless the quota of this space or of one around it has no
// room for them.
func (s *Space) Hold(n int) error { return s.take(n, "held", (*Space).heldOf) }

// Free counts n locks that have ended, or that were not taken after all.
func (s *Space) Free(n int) { s.give(n, (*Space).heldOf) }

// Wait counts a call that may wait, as Hold does.
func (s *Space) Wait() error { return s.take(1, "waiting", (*Space).waitingOf) }

// Go counts that such a call has returned.
func (s *Space) Go() { s.give(1, (*Space).waitingOf) }

func (s *Space) heldOf() (*atomic.Int64, int)    { return &s.held, s.quota.Held }
func (s *Space) waitingOf() (*atomic.Int64, int) { return &s.waiting, s.quota.Waiting }

func (s *Space) take(n int, what string, of func(*Space) (*atomic.Int64, int)) error {
	for at := s; at != nil; at = at.up {
		if count, limit := of(at); !add(count, int64(n), int64(limit)) {
			for below := s; below != at; below = below.up {
				before, _ := of(below)
				before.Add(int64(-n))
			}
			return &lease.QuotaError{
				Namespace: strings.TrimSuffix(at.prefix, Separator), What: what, Limit: limit, Asked: n,
			}
		}
	}
	return nil
}

// add counts n more, unless that exceeds the limit. It never shows more than there are: another
// call that fits would be refused.
func add(count *atomic.Int64, n, limit int64) bool {
	for {
		now := count.Load()
		if limit > 0 && now+n > limit {
			return false
		}
		if count.CompareAndSwap(now, now+n) {
			return true
		}
	}
}

func (s *Space) give(n int, of func(*Space) (*atomic.Int64, int)) {
	for at := s; at != nil; at = at.up {
		count, _ := of(at)
		count.Add(int64(-n))
	}
}
