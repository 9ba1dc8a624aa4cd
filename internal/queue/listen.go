package queue

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// idleTimeout is how long a client listens after its last wait.
const idleTimeout = 10 * time.Second

// Listen begins to listen, or goes on.
func (h *notifications) Listen() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waited = time.Now()
	if h.listening || h.stopped || !h.sends.Load() {
		return
	}
	h.listening = true
	listen := h.store.Notifier.Listen
	if h.wakes.Load() {
		listen = h.listenAs
	}
	h.wg.Go(func() { h.listen(listen) })
}

// count counts a notification. A listener gets one as soon as it is connected.
func (h *notifications) count() {
	h.heard.Add(1)
	h.mu.Lock()
	h.connected = h.listening
	h.mu.Unlock()
}

// listenAs listens in the name of this process.
func (h *notifications) listenAs(ctx context.Context, heard func(key string)) error {
	return h.store.Waker.ListenAs(ctx, h.process, func(key string, chosen bool) {
		switch {
		case chosen:
			h.count()
			if !h.notice(key) {
				h.cfg.Chosen(key)
			}
			return
		case key == "":
			h.again()
		}
		heard(key)
	})
}

// again has this process register anew, because only now it can be told of a release.
func (h *notifications) again() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.until)
}

// listen listens until the client has been idle for a while. The next poll then begins anew.
func (h *notifications) listen(listen func(ctx context.Context, heard func(key string)) error) {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	idle := time.AfterFunc(idleTimeout, func() { h.endIdle(ctx, cancel) })
	defer idle.Stop()
	err := listen(ctx, func(key string) {
		h.count()
		h.notice(key)
		h.cfg.Heard(key)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listening, h.connected = false, false
	if errors.Is(err, lease.ErrUnsupported) {
		h.sends.Store(false)
		h.wakes.Store(false)
	}
}

// endIdle ends the listening, or looks again when it may be idle.
func (h *notifications) endIdle(ctx context.Context, cancel func()) {
	h.mu.Lock()
	left := idleTimeout - time.Since(h.waited)
	h.mu.Unlock()
	if left <= 0 {
		cancel()
	} else if ctx.Err() == nil {
		time.AfterFunc(left, func() { h.endIdle(ctx, cancel) })
	}
}
