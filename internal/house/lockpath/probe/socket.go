package main

import (
	"context"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// socket hears of each write to the server.
type socket struct {
	mu       sync.Mutex
	watching bool
	deepest  []string
}

func (s *socket) dialed(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return watched{conn, s}, nil
	}
}

func (s *socket) watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = true
}

// calls returns rowlock's on the stack of a write since watch, the deepest if there were several.
func (s *socket) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = false
	return s.deepest
}

type watched struct {
	net.Conn
	socket *socket
}

func (w watched) Write(b []byte) (int, error) {
	w.socket.write()
	return w.Conn.Write(b)
}

func (s *socket) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.watching {
		return
	}
	if calls := ours(); len(calls) > len(s.deepest) {
		s.deepest = calls
	}
}

// ours are rowlock's calls on the goroutine's stack, the last one first.
func ours() (calls []string) {
	counters := make([]uintptr, 64)
	for n := 0; ; counters = make([]uintptr, 2*n) {
		if n = runtime.Callers(1, counters); n < len(counters) {
			counters = counters[:n]
			break
		}
	}
	frames := runtime.CallersFrames(counters)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		calls = append(calls, f.Function)
	}
	return slices.DeleteFunc(calls, func(name string) bool {
		return !strings.HasPrefix(name, figures.Module+".") && !strings.HasPrefix(name, figures.Module+"/")
	})
}
