package rowlock

import (
	"context"
	"maps"
	"slices"
	"time"
)

// wakes reports whether one process can be woken, and hears of it if this one is.
func (h *hints) wakes() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waker != nil
}

// listenAs listens in the name of this process.
func (h *hints) listenAs(ctx context.Context, heard func(key string)) error {
	return h.waker.ListenAs(ctx, h.process, func(key string, chosen bool) {
		switch {
		case chosen:
			h.c.woken(key)
			return
		case key == "":
			h.again()
		}
		heard(key)
	})
}

// again has this process say anew what it waits for, now that it can be told of it.
func (h *hints) again() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.until)
}

// announceLater announces key after d, unless forget comes first.
func (h *hints) announceLater(key string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	if t := h.later[key]; t != nil {
		t.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		h.mu.Lock()
		due := h.later[key] == t
		if due {
			delete(h.later, key)
		}
		h.mu.Unlock()
		if due {
			h.announce(key)
		}
	})
	h.later[key] = t
}

// forget announces key no more: this process has asked for it, and whoever has it next will announce it.
func (h *hints) forget(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.later[key]; t != nil {
		t.Stop()
		delete(h.later, key)
	}
}

// postponed returns what is to be announced later, and forgets it.
func (h *hints) postponed() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := slices.Collect(maps.Keys(h.later))
	for _, t := range h.later {
		t.Stop()
	}
	clear(h.later)
	return keys
}

// passOn wakes the next process for a key that this one was woken for and does not want. It takes back its interest, so that the
// others do not wake it in vain each time.
func (h *hints) passOn(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || h.waker == nil {
		return
	}
	delete(h.until, key)
	h.wg.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, unlockTimeout)
		defer cancel()
		h.announce(key)
		_ = h.interest.Desist(ctx, h.process, []string{key})
	})
}
