package scrape

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// gate is a way to the server that a test can shut, as a server that is down does: connections end,
// and new ones are refused.
type gate struct {
	listener net.Listener
	server   string
	late     atomic.Int64 // a time.Duration, each way
	mu       sync.Mutex
	closed   bool
	conns    []net.Conn
	running  sync.WaitGroup
}

// gated is a gate before a server of PostgreSQL, and the data source name that leads through it.
func gated(tb testing.TB, e *testdb.Env) (g *gate, source string) {
	tb.Helper()
	to, err := url.Parse(e.Source)
	must(tb, err)
	g = &gate{server: to.Host}
	g.listener, err = net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	to.Host = g.listener.Addr().String()
	g.running.Go(g.serve)
	tb.Cleanup(func() {
		_ = g.listener.Close()
		g.shut()
		g.running.Wait()
	})
	return g, to.String()
}

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", g.server)
		if err != nil || !g.keep(client, server) {
			_ = client.Close()
			continue
		}
		g.running.Go(func() { g.pass(client, server) })
		g.running.Go(func() { g.pass(server, client) })
	}
}

func (g *gate) pass(to, from net.Conn) {
	_, _ = io.Copy(slowly{to, g}, from)
	_, _ = to.Close(), from.Close()
}

// slowly writes as late as the gate says.
type slowly struct {
	io.Writer
	g *gate
}

func (s slowly) Write(p []byte) (int, error) {
	if late := time.Duration(s.g.late.Load()); late > 0 {
		<-time.After(late)
	}
	return s.Writer.Write(p)
}

func (g *gate) keep(client, server net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		_ = server.Close()
		return false
	}
	g.conns = append(g.conns, client, server)
	return true
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}
