package table

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// A server that can only wake a process does not say for which key. The store then reads those keys
// for which the process may have been woken, and reports the free ones.

// late is how much longer than its registration a key is kept: the server's clock counts that from
// when it writes the row.
const late = 5 * time.Second

func (h *hints) awaits(process lease.Owner, keys []string, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.awaited == nil {
		h.awaited = make(map[waits]time.Time)
	}
	h.forget(time.Now())
	for _, key := range keys {
		h.awaited[waits{process, key}] = until
	}
}

func (h *hints) awaitsNot(process lease.Owner, keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		delete(h.awaited, waits{process, key})
	}
}

// forget drops registrations that have ended.
func (h *hints) forget(now time.Time) {
	maps.DeleteFunc(h.awaited, func(_ waits, until time.Time) bool { return until.Before(now) })
}

// wokenFor returns the keys for which process may be woken.
func (h *hints) wokenFor(process lease.Owner, now time.Time) (keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(now)
	for w := range h.awaited {
		if w.process == process {
			keys = append(keys, w.key)
		}
	}
	slices.Sort(keys)
	return keys
}

// searches returns a function that has the keys of process read, and one that ends this. One read
// runs at a time, and all calls during it cause one more.
func (s *Store) searches(process lease.Owner, heard func(key string, chosen bool)) (
	search, end func(),
) {
	ctx, cancel := context.WithCancel(s.hints.base)
	woken := make(chan struct{}, 1)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-woken:
				s.search(ctx, process, heard)
			case <-ctx.Done():
				return
			}
		}
	})
	search = func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
	return search, func() { cancel(); running.Wait() }
}

// search reports each free key. A key that another process has taken meanwhile is that process's to
// announce. An error is a lost hint.
func (s *Store) search(
	ctx context.Context, process lease.Owner, heard func(key string, chosen bool),
) {
	keys := s.hints.wokenFor(process, time.Now())
	if len(keys) == 0 {
		return
	}
	found, err := s.listed(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return
	}
	held := make(map[string]bool)
	for _, r := range found {
		held[r.Key] = r.Held
	}
	for _, key := range keys {
		if !held[key] {
			heard(key, true)
		}
	}
}
