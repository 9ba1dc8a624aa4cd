//go:build linux

package fight

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// fate is what becomes of what a connection sends next.
type fate int32

const (
	passed fate = iota
	// unsent ends the connection before a byte of it.
	unsent
	// unanswered ends it when the server has all of it, before its answer.
	unanswered
	// late ends it for the client, and the server gets it after that.
	late
	fates
)

// latest is how late that is.
const latest = 300 * time.Millisecond

var errCut = errors.New("attack: the connection is cut")

// line is a connection of which the worker cuts some COMMITs off. A proxy would do that to
// connections of rowlock's own, too.
type line struct {
	net.Conn
	next atomic.Int32
	gone atomic.Bool // for the client
}

// cut has dial make lines.
func cut(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &line{Conn: c}, nil
	}
}

// Write has b meet its fate.
func (l *line) Write(b []byte) (n int, err error) {
	switch fate(l.next.Swap(int32(passed))) {
	case unsent:
		_ = l.Conn.Close()
		return 0, errCut
	case unanswered:
		n, err = l.Conn.Write(b)
		_ = l.Conn.Close()
		return n, err
	case late:
		l.gone.Store(true)
		go l.deliver(append([]byte(nil), b...))
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// deliver takes no deadline, which the client has set.
func (l *line) deliver(b []byte) {
	time.Sleep(rand.N(latest))
	_ = l.Conn.SetDeadline(time.Time{})
	_, _ = l.Conn.Write(b)
	_ = l.Conn.Close()
}

// Read fails once the client is to believe that the connection has ended.
func (l *line) Read(b []byte) (int, error) {
	if l.gone.Load() {
		return 0, errCut
	}
	return l.Conn.Read(b)
}

// Close leaves a line that is to deliver something open.
func (l *line) Close() error {
	if l.gone.Load() {
		return nil
	}
	return l.Conn.Close()
}

// cut draws the fate of a section's COMMIT.
func (h *hand) cut() fate {
	every := h.Plan.Phases[h.phase].Slow.Cut
	if every == 0 || h.rng.IntN(every) > 0 {
		return passed
	}
	return unsent + fate(h.rng.IntN(int(fates-unsent)))
}
