package table_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
)

// hole is a proxy before a server that can swallow what goes through it without closing anything, as a firewall does that has
// forgotten a connection. New connections pass.
type hole struct {
	net.Listener
	to string

	mu      sync.Mutex
	swallow chan struct{} // closed: what was connected before leads nowhere
	conns   []net.Conn
	wg      sync.WaitGroup
}

func newHole(tb testing.TB, to string) *hole {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	h := &hole{Listener: l, to: to, swallow: make(chan struct{})}
	h.wg.Go(h.serve)
	tb.Cleanup(h.close)
	return h
}

func (h *hole) serve() {
	for {
		client, err := h.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", h.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		h.mu.Lock()
		h.conns = append(h.conns, client, server)
		swallow := h.swallow
		h.mu.Unlock()
		h.wg.Go(func() { forward(server, client, swallow) })
		h.wg.Go(func() { forward(client, server, swallow) })
	}
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

// cut has all that is connected lead nowhere.
func (h *hole) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.swallow)
	h.swallow = make(chan struct{})
}

func (h *hole) close() {
	_ = h.Close()
	h.mu.Lock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.wg.Wait()
}

// A silence that is no more than that is borne.
func TestNothingIsMadeOfAServerThatHasNothingToSay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some 5 s")
	}
	e := on(t, "postgres")
	named(t, e)
	s := openOn(t, e, e.Dialect, true)
	ear := listen(t, s)
	var asked bool
	for began := time.Now(); !asked; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("the listener never asked whether the server is there")
		}
		err := e.DB.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE application_name = $1 AND query LIKE '-- rowlock listens%' AND state = 'idle')`, t.Name()).Scan(&asked)
		if err != nil {
			t.Fatal(err)
		}
	}
	announce(t, s, "key")
	ear.wants("key", patience)
}

func TestAConnectionThatIsCutInSilenceIsReplacedInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some 10 s")
	}
	for _, name := range []string{"of the pool", "of its own"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := on(t, "postgres")
			clean := openOn(t, e, e.Dialect, false)
			var h *hole
			d := e.Dialect
			holed := with(t, e.Source, func(u *url.URL) {
				h = newHole(t, u.Host)
				u.Host = h.Addr().String()
			})
			if name == "of the pool" {
				e.Source = holed
			} else {
				d = postgres.New(dialect.Prefix(d.Names().Prefix), postgres.Listen(holed))
			}
			s := openOn(t, e, d, true)
			ear := listen(t, s)
			announce(t, clean, "before")
			ear.wants("before", patience)
			h.cut()
			began := time.Now()
			announce(t, clean, "while nobody hears")
			ear.wants("", 10*time.Second)
			t.Logf("heard that any key may be free %s after the cut", time.Since(began).Round(time.Millisecond))
			announce(t, clean, "after")
			ear.wants("after", patience)
		})
	}
}
