package failover

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is a TCP proxy before two servers, which sends all connections to one of them, and ends
// those to the other, as HAProxy does for a server that is down.
type proxy struct {
	*route
	listener net.Listener
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	wg       sync.WaitGroup
}

func newProxy(tb testing.TB, to string) *proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{route: newRoute(to), listener: l, conns: make(map[net.Conn]struct{})}
	p.wg.Go(p.serve)
	tb.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// turn sends new connections to another server, and ends all others.
func (p *proxy) turn(to string) {
	p.change(to)
	p.cut()
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.now())
		if err != nil {
			_ = client.Close()
			continue
		}
		p.route.mu.Lock()
		p.accepted[server.RemoteAddr().String()]++
		p.route.mu.Unlock()
		p.join(client, server)
		p.join(server, client)
	}
}

// join copies in one direction, and ends both with it.
func (p *proxy) join(from, to net.Conn) {
	p.mu.Lock()
	p.conns[from] = struct{}{}
	p.mu.Unlock()
	p.wg.Go(func() {
		_, _ = io.Copy(to, from)
		_, _ = from.Close(), to.Close()
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	})
}
