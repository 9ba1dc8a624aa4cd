package rowlock

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/observe"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/internal/tenant"
	"github.com/rowlockdb/rowlock/internal/trace"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/reaper"
	"github.com/rowlockdb/rowlock/watchdog"
)

// Client hands out locks and keeps them alive. It is safe for concurrent use. Make one per process
// and database with Open or New, and Close it at the end.
type Client struct {
	*core
	space *tenant.Space // nil unless it is of a Namespace
}

// core is what a client and its namespaces share.
type core struct {
	keeper
	owned     io.Closer // the store, if Open made it
	asker     *queue.Asker
	evictions *cleanup.Evictions
	cycles    *cycle.Watch
	reaper    *reaper.Reaper
	cleaner   *reaper.Reaper // of the trace
	still     func()         // ends what the trace hears of a bridge
	unnoted   string         // what is stored for a lock without a Note
	gone      chan struct{}  // closed when Close has done all
	spaces    tenant.Spaces
}

// New returns a client on any store: a table's, a cluster's, one in memory. The caller closes the
// store, after the client.
func New(store lease.Store, cfg *Config) (*Client, error) {
	if isnil.Value(store) {
		return nil, fmt.Errorf("%w: store is nil", lease.ErrConfig)
	}
	full, err := cmp.Or(cfg, new(Config)).withDefaults()
	if err != nil {
		return nil, err
	}
	return start(store, nil, full)
}

func start(store lease.Store, owned io.Closer, cfg Config) (*Client, error) {
	able := adapter.Of(store)
	tracer, err := able.Traces()
	if cfg.Trace.On && err == nil {
		err = adapter.Keeps(tracer)
	}
	if cfg.Trace.On && err != nil {
		return nil, fmt.Errorf("%w: leave Config.Trace off", err)
	}
	if s, ok := adapter.As[lease.SyncRequirer](store); cfg.RequireSync && (!ok || !s.RequiresSync()) {
		return nil, fmt.Errorf("%w: RequireSync: the store does not say that it waits for a replica "+
			"(lease.SyncRequirer); give RequireSync to OpenTable too, or leave it out", lease.ErrUnsupported)
	}
	if s, ok := adapter.As[interface{ Relaxes() bool }](store); cfg.DurableRelease && ok && s.Relaxes() {
		return nil, fmt.Errorf("%w: DurableRelease: the store was opened without it; give it to "+
			"OpenTable too, or leave it out", lease.ErrConfig)
	}
	if cfg.Fair && able.Queue == nil {
		return nil, fmt.Errorf("%w: Fair needs a store that keeps a queue", lease.ErrUnsupported)
	}
	c := &Client{core: &core{owned: owned, gone: make(chan struct{})}}
	c.began, c.hooks = time.Now(), tell.With(cfg.Logger)
	cfg.Hooks = cfg.Hooks.apart(c.hooks)
	c.ends = cfg.Hooks.released(c.hooks)
	c.cfg, c.store, c.unnoted = cfg, able, lease.StoredNote(cfg.Identity, "")
	c.holds, c.closed = make(map[*hold]struct{}), make(chan struct{})
	c.tables = able.Tables()
	if on, ok := adapter.As[interface{ Transactor() adapter.Transactor }](store); ok {
		c.tx.Transactor = on.Transactor()
	}
	c.calls = cleanup.NewCalls()
	c.orphans = cleanup.Start(able, cfg.Fair, cfg.Logger)
	c.dog = watchdog.New(store, watchdog.Config{
		Failed: c.renewFailed, Renewed: c.renewed, Skewed: c.skewed, Late: c.startTrace(tracer),
	})
	c.cycles = cycle.New(&cycle.Watch{
		Graph: able.Graph, Identity: cfg.Identity, Log: cfg.Logger, Mine: c.mine,
		Suspect: cfg.Hooks.Suspected,
	})
	c.events = observe.New(&observe.Poller{Store: store, Every: cfg.WatchEvery, Closed: c.closed})
	c.reasons = &cleanup.Reasons{
		Store: able, Calls: c.calls, Log: cfg.Logger, Forced: cfg.Hooks.Forced,
	}
	c.startQueue()
	c.startReapers(tracer)
	return c, nil
}

// startReapers starts what removes dead rows, unless another program does.
func (c *Client) startReapers(tracer lease.Tracer) {
	if c.cfg.Reaper.Off {
		return
	}
	if c.store.Sweeper != nil {
		elect := c.elect(reaper.Key, "rowlock reaper")
		c.reaper = reaper.Start(c.store.Sweeper, elect, c.cfg.Reaper, c.cfg.Logger)
	}
	if c.cfg.Trace.On {
		clean := c.cfg.Reaper
		clean.Retention = c.cfg.Trace.Retention
		elect := c.elect(trace.ElectionKey, "rowlock trace")
		c.cleaner = reaper.Start(trace.Sweeper{Tracer: tracer}, elect, clean, c.cfg.Logger)
	}
}

// startTrace returns what the watchdog calls for a late renewal: nil if that is not traced.
func (c *Client) startTrace(store lease.Tracer) func(lease.Lease, time.Duration) {
	c.still = func() {}
	if !c.cfg.Trace.On {
		return nil
	}
	c.trace = trace.Start(trace.Config{
		Store: store, Kinds: c.cfg.Trace.kinds(), LongWait: c.cfg.Trace.LongWait,
		Buffer: c.cfg.Trace.Buffer, Identity: c.cfg.Identity, Log: c.cfg.Logger,
	})
	if c.trace.Has(lease.EventMoved) {
		c.still = c.store.TellMoves(c.trace.Moved)
	}
	if !c.trace.Has(lease.EventRenewedLate) {
		return nil
	}
	return c.trace.RenewedLate
}

// startQueue makes what gets keys, what gives them up, and the queue between.
func (c *Client) startQueue() {
	cfg, after, hooks := c.cfg, c.cfg.EvictAfter, c.cfg.Hooks
	c.evictions = &cleanup.Evictions{
		Store: c.store, After: after, Calls: c.calls, Log: cfg.Logger, Evicted: hooks.Evicted,
		Freed: func(key string) { c.queue.Wake(key) },
	}
	c.asker = &queue.Asker{
		Store: c.store, Fair: cfg.Fair, Orphans: c.orphans, Evictions: c.evictions,
		GiveUp: c.returns.Leases, Closed: c.closed, Cycles: c.cycles, Hooks: queue.Hooks{
			Contended: hooks.Contended, HolderChanged: hooks.HolderChanged, Expired: c.expired(),
		},
	}
	order := queue.Config{
		Asker: c.asker, PollMin: cfg.PollMin, PollMax: cfg.PollMax, HandOvers: cfg.HandOvers,
		Notify: queue.NotifyConfig{
			Off: cfg.Hints == HintsOff, Recent: cfg.PollMax, Identity: cfg.Identity, Log: cfg.Logger,
		},
	}
	if cfg.Fair {
		c.queue = queue.NewTickets(order)
	} else {
		c.queue = queue.NewAttempts(order)
	}
	c.returns.Store, c.returns.Orphans, c.returns.Queue = c.store, c.orphans, c.queue
}

// lastWords is how long Close waits for hooks and the Logger.
const lastWords = 2 * time.Second

// closeTimeout bounds Close, unless a store's own Close hangs: what it could not release expires.
const closeTimeout = 10 * time.Second

// Close releases every lock that is still held, ending its context with ErrUnlocked, and returns
// when the client's goroutines are gone and its connections closed. It does not close the database
// or a store given to New. Waiting calls return ErrClosed. An error says that a lock could not be
// released in 8 s, or that a call goes on that may be granted one: it will expire. Whatever hangs,
// Close returns within 14.5 s. Closing twice is harmless, and Close of a Namespace does nothing:
// close the client that it is of.
func (c *Client) Close() error {
	if c.space != nil {
		return nil
	}
	held, first := c.shut()
	if !first {
		<-c.gone // or a caller that closes the database next would take it from the first Close
		return nil
	}
	defer close(c.gone)
	var elected sync.WaitGroup // each may wait for the release of its lock
	elected.Go(c.reaper.Stop)
	elected.Go(c.cleaner.Stop)
	elected.Wait()
	// One bound for all locks, with time left for the registrations that are taken back afterwards.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout-adapter.Timeout)
	defer cancel()
	c.release(ctx, nil, partings(held), true)
	c.dog.Stop()
	drained := c.calls.Drain(ctx)
	c.cycles.Stop()
	c.events.Stop()
	c.still()
	c.trace.Stop(ctx)
	err := oneline.Join(drained, c.orphans.Stop(ctx))
	c.queue.Stop()
	c.returns.Stop()
	if c.owned != nil {
		err = oneline.Join(err, c.owned.Close())
	}
	c.hooks.Stop(lastWords)
	return err
}

// Stats returns the client's numbers. It takes microseconds, sends nothing, and disturbs no other
// call, so that a collector may call it as often as it likes. It works after Close too.
func (c *Client) Stats() Stats {
	n := &c.counts
	s := Stats{
		UnlockFailed: n.unlockFailed.Load(), Leaks: n.leaks.Load(),
		Renewals: n.renewals.Load(), Renewed: n.renewed.Load(), RenewFailed: n.renewFailed.Load(),
	}
	s.Acquired, s.Released, s.Lost = n.locks()
	s.Held = max(0, s.Acquired-s.Released-s.Lost) // Close may end a lock that is not counted yet
	s.Waiting, s.Contended = c.asker.Counts()
	s.OrphansOpen, s.OrphansCleaned = c.orphans.Counts()
	s.Untold, s.Deadlocks = c.hooks.Dropped(), c.cycles.Found()
	s.Traced, s.TraceDropped = c.trace.Counts()
	heard, listening := c.queue.Notifications()
	s.HintsHeard = heard
	if m, ok := c.store.Measure(); ok {
		listening = listening && m.Listening // the store knows of a connection that was lost
		s.ConnectionsOpen, s.ConnectionsBusy = m.Connections, m.Busy
		s.Batches, s.Requests, s.Statements = m.Batches, m.Requests, m.Statements
	}
	if listening {
		s.Listening = 1
	}
	return s
}

// Inspect lists keys with their holders, in key order, in one statement that locks nothing: for
// operators, and to see the holder of a key without asking for it. The answer may be over when it
// arrives. A Namespace lists its own keys. Released keys are listed too, until the reaper removes
// them; Filter.Held leaves them out. A filter without a Limit lists 1,000 keys at most.
func (c *Client) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if err := isnil.Context("Inspect", ctx); err != nil {
		return nil, err
	}
	if !c.calls.Enter() { // Close waits for this call before it closes the store
		return nil, fmt.Errorf("%w: Inspect", lease.ErrClosed)
	}
	defer c.calls.Leave()
	if c.space == nil {
		return c.store.Inspect(ctx, f)
	}
	f.Keys, f.Prefix = c.space.FullAll(f.Keys), c.space.Full(f.Prefix)
	if f.After != "" {
		f.After = c.space.Full(f.After)
	}
	records, err := c.store.Inspect(ctx, f)
	for i := range records {
		records[i].Key = c.space.Own(records[i].Key)
	}
	return records, err
}

func (c *Client) renewed(ctx context.Context, leases int, took time.Duration) {
	c.counts.renewals.Add(1)
	c.counts.renewed.Add(int64(leases))
	c.counts.failedInARow.Store(0)
	if h := c.cfg.Hooks.Renewed; h != nil {
		h(ctx, leases, took)
	}
}

func (c *Client) renewFailed(ctx context.Context, err error, leases int) {
	c.counts.renewFailed.Add(int64(leases))
	// The first is logged, and then ever fewer: an outage has several a second.
	if times := c.counts.failedInARow.Add(1); times&(times-1) == 0 {
		c.cfg.Logger.LogAttrs(ctx, slog.LevelWarn,
			"rowlock: renewal failed, trying again until the deadline",
			slog.Int("leases", leases), slog.Int64("times", times), slog.Any("error", err))
	}
	if h := c.cfg.Hooks.RenewFailed; h != nil {
		h(ctx, err, leases)
	}
}

// expired is what is called when a lease is found that ran out: nil if no caller wants it.
func (c *Client) expired() func(context.Context, string, Token, *HeldError) {
	var traced func(context.Context, string, Token, *HeldError)
	if c.trace.Has(lease.EventExpired) {
		traced = func(_ context.Context, key string, token Token, holder *HeldError) {
			c.trace.Expired(key, token, holder)
		}
	}
	return then4(traced, c.cfg.Hooks.Expired)
}

func (c *Client) skewed(ahead time.Duration) {
	c.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn,
		"rowlock: the database's clock ran ahead; deadlines moved forward by as much",
		slog.Duration("ahead", ahead))
	if h := c.cfg.Hooks.Skewed; h != nil {
		h(context.Background(), ahead)
	}
}
