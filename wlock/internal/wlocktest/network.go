package wlocktest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// endpoint is what listens on an address.
type endpoint interface {
	// takes reports whether a connection is accepted now.
	takes() bool
	serve(k *conn, body []byte)
}

// network has the connections of a cluster.
type network struct {
	at        map[string]endpoint
	listeners []net.Listener
	work      sync.WaitGroup

	guard sync.Mutex
	open  map[*conn]bool
	over  bool
}

// Dial reaches the cluster in memory.
func (c *Cluster) Dial(_ context.Context, _, address string) (net.Conn, error) {
	at := c.at[address]
	if at == nil || !at.takes() {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("connection refused")}
	}
	ours, theirs := net.Pipe()
	if !c.network.accept(at, theirs) {
		return nil, net.ErrClosed
	}
	return ours, nil
}

func (c *Cluster) listen(tcp bool, ip, name string, at endpoint) string {
	if !tcp {
		c.at[name] = at
		return name
	}
	l, err := net.Listen("tcp", ip+":0")
	if err != nil {
		panic(err) // a machine whose loopback is one address alone
	}
	c.listeners = append(c.listeners, l)
	c.work.Go(func() {
		for {
			to, err := l.Accept()
			if err != nil {
				return
			}
			if !at.takes() || !c.network.accept(at, to) {
				_ = to.Close()
			}
		}
	})
	return l.Addr().String()
}

func (n *network) accept(at endpoint, to net.Conn) bool {
	k := &conn{at: at, to: to, more: make(chan struct{}, 1), gone: make(chan struct{})}
	n.guard.Lock()
	defer n.guard.Unlock()
	if n.over {
		return false
	}
	n.open[k] = true
	n.work.Go(func() { k.read(n) })
	n.work.Go(k.write)
	return true
}

func (n *network) close() {
	for _, l := range n.listeners {
		_ = l.Close()
	}
	n.cut(func(*conn) bool { return true }, true)
	n.work.Wait()
}

// cut ends connections.
func (n *network) cut(which func(*conn) bool, over bool) {
	n.guard.Lock()
	defer n.guard.Unlock()
	n.over = n.over || over
	for k := range n.open {
		if which(k) {
			k.cut()
		}
	}
}

// conn is one client's connection.
type conn struct {
	at endpoint
	to net.Conn

	mu    sync.Mutex
	out   []byte
	ended bool
	more  chan struct{}
	gone  chan struct{}
	asked string // the tenant whose topology it is told of
}

func (k *conn) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.ended = true
		close(k.gone)
		_ = k.to.Close()
	}
}

func (k *conn) alive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.ended
}

// read has each frame served. One that is corrupt ends the connection, which the real one keeps.
func (k *conn) read(n *network) {
	defer func() {
		k.cut()
		n.guard.Lock()
		delete(n.open, k)
		n.guard.Unlock()
	}()
	in := bufio.NewReaderSize(k.to, 64<<10)
	var body []byte
	for {
		var err error
		if body, err = frame.Read(in, body, 10<<20); err != nil {
			return
		}
		k.at.serve(k, body)
	}
}

func (k *conn) send(b []byte) {
	k.mu.Lock()
	k.out = append(k.out, b...)
	k.mu.Unlock()
	select {
	case k.more <- struct{}{}:
	default:
	}
}

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
			k.cut()
			return
		}
		spare = out
	}
}
