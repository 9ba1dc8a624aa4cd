package forupdate_test

import (
	"context"
	"database/sql"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// hole is a proxy before a server that can swallow what goes through it without closing anything, as a machine does that has lost its power.
type hole struct {
	net.Listener
	to    string
	cut   atomic.Bool
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
}

func newHole(tb testing.TB, to string) *hole {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(tb, err)
	h := &hole{Listener: l, to: to}
	h.wg.Go(h.serve)
	tb.Cleanup(func() {
		_ = h.Close()
		h.mu.Lock()
		for _, c := range h.conns {
			_ = c.Close()
		}
		h.mu.Unlock()
		h.wg.Wait()
	})
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
		h.mu.Unlock()
		h.wg.Go(func() { h.forward(server, client) })
		h.wg.Go(func() { h.forward(client, server) })
	}
}

// forward goes on reading when the hole has been cut, and tells nobody of an end.
func (h *hole) forward(to io.WriteCloser, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if h.cut.Load() {
			if err != nil {
				return
			}
			continue
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

// holed returns a DSN that leads through a hole.
func holed(tb testing.TB, e *testdb.Env) (h *hole, source string) {
	tb.Helper()
	if e.Driver != "mysql" {
		u, err := url.Parse(e.Source)
		ok(tb, err)
		h = newHole(tb, u.Host)
		u.Host = h.Addr().String()
		return h, u.String()
	}
	cfg, err := mysql.ParseDSN(e.Source)
	ok(tb, err)
	h = newHole(tb, cfg.Addr)
	cfg.Addr = h.Addr().String()
	return h, cfg.FormatDSN()
}

// The server is not told that the client is gone. It ends the session that keeps silent, so the key comes free as a lease does.
func TestAConnectionThatVanishesWithoutAWordLetsItsKeyGoWithinTheTTL(t *testing.T) {
	const d = 2 * time.Second
	onServers(t, func(t *testing.T, e *testdb.Env) {
		t.Parallel()
		h, source := holed(t, e)
		db, err := sql.Open(e.Driver, source)
		ok(t, err)
		defer db.Close()
		gone, err := forupdate.New(db, e.Dialect, forupdate.Look(time.Hour))
		ok(t, err)
		s := open(t, e.DB, e)
		l := holdFor(t, gone, "k", d)
		if got := renew(t, gone, l, d); got != lease.Extended {
			t.Fatal(got)
		}
		h.cut.Store(true)
		began := time.Now()
		var a lease.Acquired
		eventually(t, "the key to come free", func() bool { a = ask(t, s, "k"); return a.Granted })
		if took := time.Since(began); took < d/2 || took > d+time.Second+soon {
			t.Errorf("free after %s, the TTL is %s", took, d)
		} else {
			t.Logf("free after %s", took)
		}
		if a.Token <= l.Token {
			t.Errorf("token %d came after token %d", a.Token, l.Token)
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		answers, err := gone.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: d}})
		if err == nil && answers[0].Outcome != lease.Lost {
			t.Errorf("the renewal of one who has vanished: %+v", answers)
		}
		if took := time.Since(began); took > 2*d {
			t.Errorf("the renewal of one who has vanished took %s", took)
		}
		_ = gone.Close()
	})
}
