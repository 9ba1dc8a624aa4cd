package wlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

var errClosed = fmt.Errorf("%w: wlock client", lease.ErrClosed)

// Client speaks to one cluster. It has one connection for each lock server, and is safe for
// concurrent use.
type Client struct {
	cfg      Config
	tenant   string
	began    time.Time
	sessions atomic.Int64

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu              sync.Mutex
	closed          bool
	groups          []int32 // pinned
	topologyVersion int64
	links           map[int]*link
	masters         map[int32]int // by group, as far as is known
	trouble         error         // the registry's last
	watches         map[int64]*watch
}

// New connects to the registry, and returns when it has listed every group. It waits for that until
// ctx ends, and for Config.Patience at most.
func New(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err = cmp.Or(err, has(ctx)); err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, tenant: cfg.tenant(), began: time.Now(),
		links: make(map[int]*link), masters: make(map[int32]int), watches: make(map[int64]*watch),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	ready := make(chan error, 1)
	c.work.Go(func() { c.follow(ready) })
	bound, cancel := context.WithTimeout(ctx, cfg.Patience)
	defer cancel()
	select {
	case err = <-ready:
	case <-bound.Done():
		c.know(func() { err = c.failure(ctx, false, cmp.Or(c.trouble, errSilent)) })
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connections. Locks stay until their TTL has passed.
func (c *Client) Close() error {
	c.know(func() { c.closed = true })
	c.cancel()
	c.work.Wait()
	return nil
}

// after runs each of these beside, unless the client is closed. It reports false then.
func (c *Client) after(all ...func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	for _, f := range all {
		c.work.Go(f)
	}
	return true
}

// reply is what became of a request.
type reply struct {
	*frame.Response
	sent time.Time // the try that was answered
	// unknown says that an earlier try had no answer, or ERROR: it may be carried out, even later.
	unknown bool
}

// ask sends a request to the master of its group until it is answered, for Patience at most. All
// requests may be repeated: an owner acquires again what it has, and a release names a token.
//
// An error wraps lease.ErrBusy if nothing was sent but what servers have refused, and
// lease.ErrUnknown if a try may be carried out.
func (c *Client) ask(ctx context.Context, q frame.Request, late func(*frame.Response)) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, fmt.Errorf("rowlock: wlock: %w", err)
	}
	bound, cancel := context.WithTimeout(ctx, c.cfg.Patience)
	defer cancel()
	var r reply
	var last error
	q.Tenant, q.Key = c.tenant, c.tenant+"_"+q.Key
	c.know(func() { q.Group = c.groups[place(q.Key, len(c.groups))] })
	for wait := pause; ; wait = min(2*wait, longest) {
		q.Session, q.Stamp = c.sessions.Add(1), time.Now().UnixMilli()
		r.sent = time.Now()
		var err error
		switch r.Response, err = c.try(bound, &q, late); {
		case err == nil && r.Status == frame.Redirect:
			if last = c.redirected(&q, r.Response); last == nil && q.Hops < 2 {
				continue // to a server that may be reached
			}
		case err == nil && r.Status != frame.Error:
			return r, nil
		case err == nil:
			r.unknown, last = true, errors.New("the server answered ERROR")
		default:
			r.unknown, last = r.unknown || !errors.Is(err, errUnsent), err
		}
		if !sleep(bound, wait) || c.ctx.Err() != nil {
			return r, c.failure(ctx, r.unknown, last)
		}
	}
}

// failure tells the end of a deadline only if that is ctx's, the caller's.
func (c *Client) failure(ctx context.Context, unknown bool, last error) error {
	kind := lease.ErrBusy
	switch {
	case unknown:
		kind = lease.ErrUnknown
	case c.ctx.Err() != nil:
		kind = lease.ErrClosed
	}
	switch err := context.Cause(ctx); {
	case err != nil && !errors.Is(last, err):
		return fmt.Errorf("%w: wlock: %w: %w", kind, err, last)
	case err == nil && errors.Is(last, context.DeadlineExceeded):
		return fmt.Errorf("%w: wlock: %v", kind, last)
	}
	return fmt.Errorf("%w: wlock: %w", kind, last)
}

// try sends a request once, to the server that seems to be the master.
func (c *Client) try(ctx context.Context, q *frame.Request, late func(*frame.Response)) (*frame.Response, error) {
	l := c.target(q.Group)
	if l == nil {
		return nil, fmt.Errorf("%w: no server of group %d can be reached", errUnsent, q.Group)
	}
	k, err := c.connect(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsent, err)
	}
	a, err := k.do(ctx, q, c.cfg.Timeout, late)
	if errors.Is(err, errSilent) {
		c.shun(l, 4*longest) // if it still is the master, the next server says so
	}
	if err == nil && a.Key != q.Key {
		// The server cannot echo the key, or answers something else. Its number was ours.
		err = fmt.Errorf("%w: an answer to %.60q is about %.60q", ErrCorrupt, q.Key, a.Key)
		k.end(err)
	}
	return a, err
}

// target is the master of a group, or another server while that is shunned: it knows a newer one.
func (c *Client) target(group int32) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	master := c.masters[group]
	if l := c.links[master]; l != nil && !c.shuns(l) {
		return l
	}
	seqs := slices.Sorted(maps.Keys(c.links))
	at, _ := slices.BinarySearch(seqs, master+1)
	for _, seq := range slices.Concat(seqs[at:], seqs[:at]) {
		if l := c.links[seq]; !c.shuns(l) {
			return l
		}
	}
	return nil
}

// redirected learns the master. The port that it is told is none for clients, so that only the IP
// counts. A count of three would have servers act for a master that is dead, two at once: it stays
// below.
func (c *Client) redirected(q *frame.Request, a *frame.Response) error {
	q.Hops = min(a.Hops+1, 2)
	to := frame.Master(a.Properties)
	ip, _, _ := net.SplitHostPort(to)
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.masters[q.Group]
	for seq, l := range c.links {
		if l.IP != ip || seq == was {
			continue
		}
		c.masters[q.Group] = seq
		if !c.shuns(l) {
			return nil
		}
	}
	return fmt.Errorf("no master of group %d can be reached: a server names %.60q", q.Group, to)
}
