package rowlock

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	interestLasts = 10 * time.Second // a process that waits says so at least every half of it
	listenLinger  = 10 * time.Second // how long a client listens after the last wait
)

// hints are what a client tells other processes, and hears from them. Nothing rests on them.
type hints struct {
	c        *Client
	process  lease.Owner
	notifier lease.Notifier // nil if the store has none, or they are off
	waker    lease.Waker    // notifier, if it can wake one process of many; nil for a Fair client, whose queue says who is next
	interest lease.Interest // nil if the store has none
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu        sync.Mutex
	until     map[string]time.Time   // when our registration for a key ends, as far as it need not be repeated
	noted     map[string]time.Time   // until when the store may have a registration of ours
	later     map[string]*time.Timer // what is announced unless this process has the key again first
	crowds    map[string]crowd
	news      map[string]struct{} // to be announced
	telling   bool
	listening bool
	waited    time.Time // when somebody last waited
	stopped   bool
}

func startHints(c *Client) *hints {
	h := &hints{c: c, process: lease.NewOwner(), until: make(map[string]time.Time), noted: make(map[string]time.Time), news: make(map[string]struct{}), crowds: make(map[string]crowd), later: make(map[string]*time.Timer)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.interest, _ = seam.As[lease.Interest](c.store)
	if c.cfg.Hints == HintsOn {
		h.notifier, _ = seam.As[lease.Notifier](c.store)
		if w, ok := seam.As[lease.Waker](c.store); ok && h.interest != nil && !c.cfg.Fair && w.Wakes() {
			h.waker = w
		}
	}
	return h
}

// await says that this process waits for keys, before the poller looks at them: whoever releases one after that look knows.
func (h *hints) await(ctx context.Context, keys []string) {
	h.listen()
	if h.interest == nil {
		return
	}
	now := time.Now()
	h.mu.Lock()
	maps.DeleteFunc(h.until, func(_ string, until time.Time) bool { return until.Before(now) })
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return h.until[k].Sub(now) > interestLasts/2 })
	maps.DeleteFunc(h.noted, func(_ string, until time.Time) bool { return until.Before(now) })
	for _, k := range keys { // also if the answer does not come: a release would wake a process that has gone
		h.noted[k] = now.Add(interestLasts + unlockTimeout)
	}
	h.mu.Unlock()
	if len(keys) == 0 || h.interest.Await(ctx, h.process, keys, interestLasts) != nil {
		return // it is said again before the next look
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range keys {
		h.until[k] = now.Add(interestLasts)
	}
}

// listen begins to listen, or goes on.
func (h *hints) listen() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waited = time.Now()
	if h.listening || h.stopped || h.notifier == nil {
		return
	}
	h.listening = true
	listen := h.notifier.Listen
	if h.waker != nil {
		listen = h.listenAs
	}
	h.wg.Go(func() { h.hear(listen) })
}

// hear listens until nobody has waited for a while; the next look of the poller then begins anew.
func (h *hints) hear(listen func(ctx context.Context, heard func(key string)) error) {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	idle := time.AfterFunc(listenLinger, func() { h.rest(ctx, cancel) })
	defer idle.Stop()
	err := listen(ctx, h.c.call)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listening = false
	if errors.Is(err, lease.ErrUnsupported) {
		h.notifier, h.waker = nil, nil
	}
}

// rest ends the listening, or looks again later.
func (h *hints) rest(ctx context.Context, cancel func()) {
	h.mu.Lock()
	left := listenLinger - time.Since(h.waited)
	h.mu.Unlock()
	if left <= 0 {
		cancel()
	} else if ctx.Err() == nil {
		time.AfterFunc(left, func() { h.rest(ctx, cancel) })
	}
}

// announce tells other processes at once, so that no waiter waits for a goroutine to be woken. Releases that come while one is being
// told make one statement together afterwards.
func (h *hints) announce(keys ...string) {
	h.mu.Lock()
	if h.notifier == nil || h.stopped || len(keys) == 0 {
		h.mu.Unlock()
		return
	}
	for _, key := range keys {
		h.news[key] = struct{}{}
	}
	mine := !h.telling
	if mine {
		h.telling = true
		h.wg.Add(1)
	}
	h.mu.Unlock()
	if !mine {
		return
	}
	defer h.wg.Done()
	if more := h.tell(); more {
		h.wg.Go(func() {
			for more := true; more; {
				more = h.tell()
			}
		})
	}
}

// sends reports whether hints reach anybody.
func (h *hints) sends() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.notifier != nil
}

// tell sends what there is, and reports whether more has come meanwhile.
func (h *hints) tell() (more bool) {
	h.mu.Lock()
	keys, notifier, waker := slices.Sorted(maps.Keys(h.news)), h.notifier, h.waker
	clear(h.news)
	h.mu.Unlock()
	if notifier != nil && len(keys) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), unlockTimeout)
		defer cancel()
		if err := h.send(ctx, notifier, waker, keys); err != nil {
			h.c.cfg.Logger.LogAttrs(h.ctx, slog.LevelDebug, "rowlock: a hint was not sent; the waiters poll", slog.Any("error", err))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.telling = len(h.news) > 0
	return h.telling
}

// send wakes one process for each key, or tells all.
func (h *hints) send(ctx context.Context, notifier lease.Notifier, waker lease.Waker, keys []string) error {
	if waker != nil {
		return waker.Wake(ctx, h.process, keys)
	}
	return notifier.Announce(ctx, keys)
}

// stop returns when nothing runs any more, and takes back what this process waits for.
func (h *hints) stop() {
	h.announce(h.postponed()...)
	h.mu.Lock()
	h.stopped = true
	keys := slices.Sorted(maps.Keys(h.noted))
	h.mu.Unlock()
	h.cancel()
	h.wg.Wait()
	if len(keys) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
		defer cancel()
		if settler, ok := seam.As[lease.Settler](h.c.store); ok {
			settler.Settle(ctx) // a registration whose caller has left would be written after it was taken back
		}
		_ = h.interest.Desist(ctx, h.process, keys)
	}
}
