package queue

import (
	"context"
	"slices"
)

// Watch listens for keys that other processes release, without a waiter in their queues: for a
// caller that wants some of many keys and asks for them itself.
type Watch struct {
	h     *notifications
	keys  []string
	freed chan struct{} // has room for one
}

// Watch begins to listen for keys. End it with Stop.
func (h *notifications) Watch(keys []string) *Watch {
	w := &Watch{h: h, keys: keys, freed: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches = append(h.watches, w)
	return w
}

// Register is to be called before the keys are read: a release after that is announced to this
// process. It sends nothing where none are heard, or if the registration is young.
func (w *Watch) Register(ctx context.Context) {
	if w.h.sends.Load() {
		w.h.Register(ctx, w.keys)
	}
}

// Awaited reports whether another process waits for one of the keys, or for one more.
func (w *Watch) Awaited(ctx context.Context, more string) bool {
	return w.h.store.AnyAwaited(ctx, w.h.process, append([]string{more}, w.keys...)...)
}

// Freed gets a value when one of the keys may have been released.
func (w *Watch) Freed() <-chan struct{} { return w.freed }

// Stop ends w. The process stays registered for a while, and passes on what it is told.
func (w *Watch) Stop() {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	w.h.watches = slices.DeleteFunc(w.h.watches, func(o *Watch) bool { return o == w })
}

// notice tells those that watch key, or all if it is "". It reports whether there are any.
func (h *notifications) notice(key string) (any bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.watches {
		if key != "" && !slices.Contains(w.keys, key) {
			continue
		}
		any = true
		select {
		case w.freed <- struct{}{}:
		default: // the last value was not read yet
		}
	}
	return any
}
