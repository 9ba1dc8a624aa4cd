package wlock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// link is a lock server, with its connection if there is one.
type link struct {
	node
	address string
	one     chan struct{} // has room for the caller that dials
	k       atomic.Pointer[conn]
	avoid   atomic.Int64 // until when, since the client began
}

// conn is one connection, shared by all calls to a server.
type conn struct {
	c    *Client
	of   *link
	to   net.Conn
	more chan struct{}
	gone chan struct{}
	last atomic.Int64 // when something was heard

	mu      sync.Mutex
	out     []byte
	pending map[int64]*call
	err     error
}

// call is a request that waits for its answer.
type call struct {
	answer chan *frame.Response
	late   func(*frame.Response) // gets the answer if its caller has left
	left   bool
}

// connect returns the connection of a server, and opens one if there is none.
func (c *Client) connect(ctx context.Context, l *link) (*conn, error) {
	if k := l.k.Load(); k != nil && k.alive() {
		return k, nil
	}
	select {
	case l.one <- struct{}{}:
		defer func() { <-l.one }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if k := l.k.Load(); k != nil && k.alive() {
		return k, nil
	}
	to, err := c.dial(ctx, l.address)
	if err != nil {
		if ctx.Err() == nil { // else the caller has left, which says nothing of the server
			c.shun(l, 4*longest)
		}
		return nil, err
	}
	k := &conn{
		c: c, of: l, to: to, more: make(chan struct{}, 1), gone: make(chan struct{}),
		pending: make(map[int64]*call),
	}
	k.last.Store(int64(time.Since(c.began)))
	if !c.after(k.read, k.write, k.beats) {
		_ = to.Close()
		return nil, errClosed
	}
	l.k.Store(k)
	return k, nil
}

// shun has calls try other servers first for a while, which is longer than the pause between two
// tries: the second then asks a server that may know a newer master.
func (c *Client) shun(l *link, d time.Duration) { l.avoid.Store(int64(time.Since(c.began) + d)) }

func (c *Client) shuns(l *link) bool { return l.avoid.Load() > int64(time.Since(c.began)) }

func (k *conn) alive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err == nil
}

// end closes the connection. Calls under way return at once: their outcome is unknown.
func (k *conn) end(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
		close(k.gone)
		_ = k.to.Close()
	}
}

// errUnsent says that nothing has left, errSilent that no answer came.
var (
	errUnsent = errors.New("not sent")
	errSilent = errors.New("no answer")
)

// do sends a request and waits for its answer, which has only these bounds: ctx, the connection's
// end, and d. If the caller leaves first, late gets the answer.
func (k *conn) do(ctx context.Context, q *frame.Request, d time.Duration, late func(*frame.Response)) (
	*frame.Response, error,
) {
	one := &call{answer: make(chan *frame.Response, 1), late: late}
	if err := k.send(q, one); err != nil {
		return nil, err
	}
	bound := time.NewTimer(d)
	defer bound.Stop()
	var err error
	select {
	case a := <-one.answer:
		return a, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-bound.C:
		err = fmt.Errorf("%w from %s within %s", errSilent, k.of.address, d)
	case <-k.gone:
		err = k.err
	}
	return k.leave(q.Session, one, err)
}

// leave takes an answer that came at the last moment, or leaves it to late.
func (k *conn) leave(session int64, one *call, err error) (*frame.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case a := <-one.answer:
		return a, nil
	default:
	}
	if one.left = true; one.late == nil {
		delete(k.pending, session)
	}
	return nil, err
}

func (k *conn) send(q *frame.Request, one *call) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return fmt.Errorf("%w: %w", errUnsent, k.err)
	}
	if one != nil {
		k.pending[q.Session] = one
	}
	k.out = frame.Append(k.out, q)
	select {
	case k.more <- struct{}{}:
	default:
	}
	return nil
}

// write sends what calls have left since the last write, all of it at once.
func (k *conn) write() {
	var spare []byte
	for {
		select {
		case <-k.gone:
			return
		case <-k.more:
		}
		k.mu.Lock()
		out := k.out
		k.out = spare[:0]
		k.mu.Unlock()
		if _, err := k.to.Write(out); err != nil {
			k.end(err)
			return
		}
		spare = out
	}
}

// read hands out what comes. What is not understood ends the connection: what follows could be
// taken for anything.
func (k *conn) read() {
	stop := context.AfterFunc(k.c.ctx, func() { k.end(errClosed) })
	defer stop()
	in := bufio.NewReaderSize(k.to, 64<<10)
	var body []byte
	for {
		var err error
		if body, err = frame.Read(in, body, frame.MaxBody); err == nil {
			k.last.Store(int64(time.Since(k.c.began)))
			err = k.take(body)
		}
		if err != nil {
			k.end(err)
			k.c.know(k.c.wake) // the server has forgotten its waiters
			return
		}
	}
}

// take looks at the type first: what a server sends by itself has numbers of its own.
func (k *conn) take(body []byte) error {
	switch of := frame.Type(body[6]); of {
	case frame.Event, frame.Reboot:
		var m frame.Request
		if err := frame.Decode(body, &m); err != nil {
			return err
		}
		if of == frame.Reboot {
			k.c.shun(k.of, time.Second)
		} else {
			k.c.heard(&m)
		}
		return nil
	}
	a := new(frame.Response)
	if err := frame.Decode(body, a); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.pending[a.Session]
	delete(k.pending, a.Session)
	switch {
	case one == nil:
	case !one.left:
		one.answer <- a
	default:
		k.c.after(func() { one.late(a) })
	}
	return nil
}

// beats shows signs of life, and ends a connection whose server shows none.
func (k *conn) beats() {
	ticks := time.NewTicker(k.c.cfg.Heartbeat)
	defer ticks.Stop()
	for {
		select {
		case <-k.gone:
			return
		case <-ticks.C:
		}
		if quiet := time.Since(k.c.began) - time.Duration(k.last.Load()); quiet > 3*k.c.cfg.Heartbeat {
			k.end(fmt.Errorf("%w from %s for %s", errSilent, k.of.address, quiet))
			return
		}
		_ = k.send(&frame.Request{Type: frame.Heartbeat, Session: k.c.sessions.Add(1)}, nil)
	}
}
