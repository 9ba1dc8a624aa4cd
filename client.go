package rowlock

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/internal/waitq"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/reaper"
	"github.com/rowlockdb/rowlock/watchdog"
)

// Client hands out locks and keeps them alive. It is safe for concurrent use. Make one per process and database with Open or
// New, and Close it at the end.
type Client struct {
	cfg    Config
	store  lease.Store
	owned  io.Closer // the store, if Open made it
	dog    *watchdog.Dog
	reaper *reaper.Reaper
	janitor

	lines  *waitq.Lines[request, grant]
	runs   waitq.Runs
	poller waitq.Poller
	hints  *hints
	fair   *fair // nil unless Config.Fair
	// acquire is the store's, or of a fair client the queue's: whoever comes out of turn is not granted.
	acquire func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)

	spells    spells
	evictions evictions
	mu        sync.Mutex
	locks     map[*Lock]struct{}
	closed    chan struct{} // closed by Close; ends every wait
	gone      chan struct{} // closed when Close has done all
}

// New returns a client on any store: a table's, a cluster's, one in memory. The caller closes the store, after the client.
func New(store lease.Store, cfg *Config) (*Client, error) {
	if isnil.Value(store) {
		return nil, fmt.Errorf("%w: store is nil", lease.ErrConfig)
	}
	if cfg == nil {
		cfg = new(Config)
	}
	full, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return start(store, nil, full)
}

func start(store lease.Store, owned io.Closer, cfg Config) (*Client, error) {
	queue, ok := seam.As[lease.Queue](store)
	if cfg.Fair && !ok {
		return nil, fmt.Errorf("%w: Fair needs a store that keeps a queue", lease.ErrUnsupported)
	}
	c := &Client{cfg: cfg, store: store, owned: owned, locks: make(map[*Lock]struct{}), closed: make(chan struct{}), gone: make(chan struct{})}
	c.dog = watchdog.New(store, watchdog.Config{Failed: c.renewFailed, Skewed: c.skewed})
	if cfg.Fair {
		c.janitor.queue = queue
	}
	c.janitor.start(store, cfg.Logger)
	c.acquire = store.Acquire
	c.evictions.start(c)
	c.startWaiting()
	if cfg.Fair {
		c.acquire, c.fair = queue.Claim, startFair(c, queue)
	}
	if sweeper, ok := seam.As[lease.Sweeper](store); ok && !cfg.Reaper.Off {
		c.reaper = reaper.Start(sweeper, c.elect, cfg.Reaper, cfg.Logger)
	}
	return c, nil
}

// elect takes the reaper's lock.
func (c *Client) elect(ctx context.Context) (context.Context, func(), error) {
	r, err := c.request(nil)
	if err != nil {
		return nil, nil, err
	}
	r.maxHold, r.internal, r.note = 0, true, "rowlock reaper"
	l, err := c.attempt(ctx, reaper.Key, r, time.Now())
	if err != nil {
		return nil, nil, err
	}
	return l.Context(), func() { _ = l.Unlock(context.WithoutCancel(ctx)) }, nil
}

// Close gives back every lock that is still held, ending its context with ErrUnlocked, and returns when the client's
// goroutines are gone and its connections closed. It does not close the database or a store given to New. Waiting calls
// return ErrClosed. An error says that something could not be given back in 8 s and will expire. Whatever
// hangs, Close returns within 12.5 s. Closing twice is harmless.
func (c *Client) Close() error {
	c.mu.Lock()
	select {
	case <-c.closed:
		c.mu.Unlock()
		<-c.gone // or whoever closes the database next would take it from the first
		return nil
	default:
	}
	defer close(c.gone)
	close(c.closed)
	held := make([]*Lock, 0, len(c.locks))
	for l := range c.locks {
		held = append(held, l)
	}
	c.mu.Unlock()

	if c.reaper != nil {
		c.reaper.Stop()
	}
	// For all of it, not for each; and what this process waits for is taken back afterwards.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout-unlockTimeout)
	defer cancel()
	c.releaseAll(ctx, held)
	c.dog.Stop()
	err := c.janitor.stop(ctx) // when the last waiter has gone
	c.poller.Stop()
	if c.fair != nil {
		c.fair.poller.Stop()
	}
	c.hints.stop()
	c.spells.stop()
	if c.owned != nil {
		err = join(err, c.owned.Close())
	}
	return err
}

// releaseAll gives locks back in one call to the store, or leaves them to MinHold.
func (c *Client) releaseAll(ctx context.Context, held []*Lock) {
	leases := make([]lease.Lease, 0, len(held))
	var staying []*Lock
	for _, l := range held {
		if !l.finish(ErrUnlocked) {
			continue
		}
		if l.rest() > 0 {
			staying = append(staying, l)
			continue
		}
		leases = append(leases, l.held.Lease)
	}
	c.leave(context.WithoutCancel(ctx), staying...)
	if len(leases) > 0 {
		c.releaseLeases(ctx, leases)
	}
}

// releaseLeases gives leases back and tells other processes. What fails is the janitor's.
func (c *Client) releaseLeases(ctx context.Context, leases []lease.Lease) {
	if c.fair != nil {
		c.fair.passAll(ctx, leases)
		return
	}
	answers, err := c.store.Release(ctx, leases)
	var awaited []string
	for i, l := range leases {
		if err != nil || len(answers) != len(leases) || answers[i].Err != nil {
			c.janitor.cleanUp(l.Key, l.Owner)
		} else if answers[i].Awaited {
			awaited = append(awaited, l.Key)
		}
	}
	c.hints.announce(awaited...)
}

// closeTimeout bounds Close, unless a store's own Close hangs: what it could not give back in time expires.
const closeTimeout = 10 * time.Second

func (c *Client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// add registers a lock that was just granted, unless the client was closed meanwhile.
func (c *Client) add(l *Lock) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return false
	}
	c.locks[l] = struct{}{}
	return true
}

func (c *Client) remove(l *Lock) {
	c.mu.Lock()
	delete(c.locks, l)
	c.mu.Unlock()
}

func (c *Client) renewFailed(err error, leases int) {
	c.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "rowlock: renewal failed, trying again until the deadline",
		slog.Int("leases", leases), slog.Any("error", err))
	if h := c.cfg.Hooks.RenewFailed; h != nil {
		h(err, leases)
	}
}

func (c *Client) skewed(ahead time.Duration) {
	c.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "rowlock: the database's clock ran ahead; deadlines moved forward by as much",
		slog.Duration("ahead", ahead))
	if h := c.cfg.Hooks.Skewed; h != nil {
		h(ahead)
	}
}
