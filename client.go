package rowlock

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/internal/bidq"
	"github.com/rowlockdb/rowlock/internal/evict"
	"github.com/rowlockdb/rowlock/internal/fairq"
	"github.com/rowlockdb/rowlock/internal/hint"
	"github.com/rowlockdb/rowlock/internal/inflight"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/orphan"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/reaper"
	"github.com/rowlockdb/rowlock/watchdog"
)

// Client hands out locks and keeps them alive. It is safe for concurrent use. Make one per process
// and database with Open or New, and Close it at the end.
type Client struct {
	keeper
	owned     io.Closer // the store, if Open made it
	asker     *acquire.Asker
	evictions *evict.Watch
	reaper    *reaper.Reaper
	gone      chan struct{} // closed when Close has done all
}

// New returns a client on any store: a table's, a cluster's, one in memory. The caller closes the
// store, after the client.
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
	able := seam.Of(store)
	if cfg.Fair && !able.HasQueue() {
		return nil, fmt.Errorf("%w: Fair needs a store that keeps a queue", lease.ErrUnsupported)
	}
	c := &Client{owned: owned, gone: make(chan struct{})}
	c.cfg, c.store = cfg, able
	c.locks, c.closed = make(map[*Lock]struct{}), make(chan struct{})
	c.calls = inflight.New()
	c.orphans = orphan.Start(able, cfg.Fair, cfg.Logger)
	c.dog = watchdog.New(store, watchdog.Config{Failed: c.renewFailed, Skewed: c.skewed})
	c.startQueue()
	if able.Sweeper != nil && !cfg.Reaper.Off {
		c.reaper = reaper.Start(able.Sweeper, c.elect, cfg.Reaper, cfg.Logger)
	}
	return c, nil
}

// startQueue makes what gets keys, what gives them up, and the queue between.
func (c *Client) startQueue() {
	cfg, after := c.cfg, c.cfg.EvictAfter
	c.evictions = &evict.Watch{
		Store: c.store, After: after, Calls: c.calls, Log: cfg.Logger, Evicted: cfg.Hooks.Evicted,
		Freed: func(key string) { c.queue.Wake(key) },
	}
	c.asker = &acquire.Asker{
		Store: c.store, Fair: cfg.Fair, Orphans: c.orphans, Evictions: c.evictions,
		Contended: cfg.Hooks.Contended, GiveUp: c.returns.Leases, Closed: c.closed,
	}
	hints := hint.Config{Off: cfg.Hints == HintsOff, Recent: cfg.PollMax, Log: cfg.Logger}
	if cfg.Fair {
		c.queue = fairq.New(fairq.Config{
			Asker: c.asker, Hints: hints, PollMin: cfg.PollMin, PollMax: cfg.PollMax,
		})
	} else {
		c.queue = bidq.New(bidq.Config{
			Asker: c.asker, Hints: hints, PollMin: cfg.PollMin, PollMax: cfg.PollMax,
			HandOvers: cfg.HandOvers,
		})
	}
	c.returns.Store, c.returns.Orphans, c.returns.Queue = c.store, c.orphans, c.queue
}

// closeTimeout bounds Close, unless a store's own Close hangs: what it could not release expires.
const closeTimeout = 10 * time.Second

// Close releases every lock that is still held, ending its context with ErrUnlocked, and returns
// when the client's goroutines are gone and its connections closed. It does not close the database
// or a store given to New. Waiting calls return ErrClosed. An error says that a lock could not be
// released in 8 s and will expire. Whatever hangs, Close returns within 12.5 s. Closing twice is
// harmless.
func (c *Client) Close() error {
	held, first := c.shut()
	if !first {
		<-c.gone // or a caller that closes the database next would take it from the first Close
		return nil
	}
	defer close(c.gone)
	if c.reaper != nil {
		c.reaper.Stop()
	}
	// One bound for all locks, with time left for the registrations that are taken back afterwards.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout-seam.Timeout)
	defer cancel()
	c.release(ctx, held, make([]error, len(held)), true)
	c.dog.Stop()
	c.calls.Drain(ctx)
	err := c.orphans.Stop(ctx)
	c.queue.Stop()
	c.returns.Stop()
	if c.owned != nil {
		err = oneline.Join(err, c.owned.Close())
	}
	return err
}

func (c *Client) renewFailed(err error, leases int) {
	c.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn,
		"rowlock: renewal failed, trying again until the deadline",
		slog.Int("leases", leases), slog.Any("error", err))
	if h := c.cfg.Hooks.RenewFailed; h != nil {
		h(err, leases)
	}
}

func (c *Client) skewed(ahead time.Duration) {
	c.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn,
		"rowlock: the database's clock ran ahead; deadlines moved forward by as much",
		slog.Duration("ahead", ahead))
	if h := c.cfg.Hooks.Skewed; h != nil {
		h(ahead)
	}
}
