package testdb

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// Hole is a proxy before a server that can swallow what goes through it without closing anything.
type Hole struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	closed  bool
	lose    int           // see LoseAnswer
	swallow chan struct{} // closed: what was connected with it leads nowhere
	conns   []net.Conn
	wg      sync.WaitGroup
}

// Holed puts a Hole before the Env's server, and returns the data source name that leads through it.
func (e *Env) Holed(tb testing.TB) (h *Hole, source string) {
	tb.Helper()
	if e.Driver == "mysql" {
		cfg, err := mysqldriver.ParseDSN(e.Source)
		if err != nil {
			tb.Fatal(err)
		}
		h = newHole(tb, cfg.Addr)
		cfg.Addr = h.Addr()
		return h, cfg.FormatDSN()
	}
	u, err := url.Parse(e.Source)
	if err != nil {
		tb.Fatal(err)
	}
	h = newHole(tb, u.Host)
	u.Host = h.Addr()
	return h, u.String()
}

// BehindHole returns the Env as a client has it whose server can vanish.
func (e *Env) BehindHole(tb testing.TB) (*Env, *Hole) {
	tb.Helper()
	through := *e
	h, source := e.Holed(tb)
	through.Source = source
	return &through, h
}

func newHole(tb testing.TB, to string) *Hole {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	h := &Hole{listener: l, to: to, swallow: make(chan struct{})}
	h.wg.Go(h.serve)
	tb.Cleanup(h.close)
	return h
}

// Addr is where the hole is.
func (h *Hole) Addr() string { return h.listener.Addr().String() }

// Cut has all that is connected lead nowhere, as a firewall does that has forgotten a connection. New connections pass.
func (h *Hole) Cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.swallow)
	h.swallow = make(chan struct{})
}

// Vanish has all that is connected lead nowhere, and all that will be, as a machine that has lost its power.
func (h *Hole) Vanish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.swallow)
}

func (h *Hole) serve() {
	for {
		client, err := h.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", h.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		swallow, open := h.keep(client, server)
		if !open {
			return
		}
		l := &link{h: h}
		h.wg.Go(func() { forward(requests{server, l}, client, swallow) })
		h.wg.Go(func() { forward(answers{client, l}, server, swallow) })
	}
}

// keep notes two connections, which close will close, or closes them itself if close came before: a
// server would keep a connection without a password for a minute.
func (h *Hole) keep(client, server net.Conn) (swallow <-chan struct{}, open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_, _ = client.Close(), server.Close()
		return nil, false
	}
	h.conns = append(h.conns, client, server)
	return h.swallow, true
}

func forward(to io.WriteCloser, from io.Reader, swallow <-chan struct{}) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-swallow:
			if err != nil {
				return // and the other side is never told
			}
			continue
		default:
		}
		if err == nil {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func (h *Hole) close() {
	_ = h.listener.Close()
	h.mu.Lock()
	h.closed = true
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.wg.Wait()
}
