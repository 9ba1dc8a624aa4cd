package queue

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// NotifyConfig says what notifications are for.
type NotifyConfig struct {
	// Off: nothing is announced or heard. Registrations are still written.
	Off bool
	// Everyone has a release told to all listeners, even where the store can wake one process: a
	// fair queue says itself which waiter is next.
	Everyone bool
	// Recent is how young a hold must be for the processes that wait for the key to be counted.
	Recent time.Duration
	// Identity is what the store's registrations show of this process.
	Identity string
	Log      *slog.Logger
	// Heard is called with each key that another process announces, or "" for any key.
	Heard func(key string)
	// Chosen is called with each key for which this process alone was woken.
	Chosen func(key string)
}

// notifications tell other processes that a key was released, and listen for it. Nothing
// depends on them, because polling guarantees progress: a notification only reduces latency. Make
// them with newNotifications and end them with Stop. They are safe for concurrent use.
type notifications struct {
	cfg    NotifyConfig
	store  *adapter.Store
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// sends says that an announcement has an effect. wakes says that it wakes one process of many,
	// and that this process is told if it is the one. A database that cannot says so once.
	sends, wakes atomic.Bool

	mu      sync.Mutex // guards what follows
	stopped bool
	registrations
	listener
	outbox
}

// registrations are what the store knows of a process that waits, and this process of others.
type registrations struct {
	process lease.Owner
	until   map[string]time.Time // when our registration for a key ends
	noted   map[string]time.Time // until when the store may have a registration of ours
	waiters map[string]waiterCount
}

// listener is what a process is told by others.
type listener struct {
	heard     atomic.Int64 // notifications
	listening bool
	connected bool      // the store has begun to listen
	waited    time.Time // of the last wait
	watches   []*Watch
}

// outbox is what a process has to tell others.
type outbox struct {
	news    map[string]struct{} // to be announced
	telling bool
}

// newNotifications returns those of one client. Nothing runs until a key is awaited or announced.
func newNotifications(store *adapter.Store, cfg NotifyConfig) *notifications {
	h := &notifications{cfg: cfg, store: store, outbox: outbox{news: make(map[string]struct{})}}
	h.registrations = registrations{
		process: lease.NewOwner(),
		until:   make(map[string]time.Time), noted: make(map[string]time.Time),
		waiters: make(map[string]waiterCount),
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	store.Meet(h.process)
	h.sends.Store(!cfg.Off && store.Notifier != nil)
	h.wakes.Store(!cfg.Off && !cfg.Everyone && store.Registry != nil && store.Waker != nil)
	return h
}

// Stop returns when nothing runs any more, and takes this process's registrations back.
func (h *notifications) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.cancel()
	h.wg.Wait()
	h.unregister()
}
