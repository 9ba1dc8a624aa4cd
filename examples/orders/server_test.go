package main

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// server is the program as its operator sees it: it is started, killed, and started again on the
// same address.
type server struct {
	testing.TB
	source, url string

	mu  sync.Mutex
	cmd *exec.Cmd
}

func startServer(t *testing.T, source string) *server {
	t.Helper()
	s := &server{TB: t, source: source}
	s.start("127.0.0.1:0")
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	return s
}

// start returns when the server listens.
func (s *server) start(addr string) {
	s.cmd = exec.Command(binary, "-db", s.source, "-addr", addr)
	var stderr strings.Builder
	s.cmd.Stderr = &stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.Error(err)
		return
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		_ = s.cmd.Wait()
		s.Errorf("the server said %q and %s", line, stderr.String())
		return
	}
	if s.url == "" { // it stays what it was
		s.url = url
	}
}

// kill ends the server with SIGKILL, and starts it again behind the caller's back.
func (s *server) kill() {
	s.mu.Lock()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	go func() {
		defer s.mu.Unlock()
		s.start(strings.TrimPrefix(s.url, "http://"))
	}()
}

// up returns when the server that was killed last is there again.
func (s *server) up() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// killer is a client's way to the server. At every so manieth request it kills the server: a moment
// after the request has been sent, so that it and those of the other clients are somewhere in their
// work; or as soon as the reply has come, which the client then does not get. What the server was
// killed for saying must be true all the same, so it is kept.
type killer struct {
	server        *server
	every         int64
	asked         atomic.Int64
	during, after int64

	mu    sync.Mutex
	heard map[string]reply // by key
	first map[string]bool  // keys whose first answer a client has heard, not only a repeat of it
}

var errKilled = errors.New("the server was killed before its reply came")

func (k *killer) RoundTrip(req *http.Request) (*http.Response, error) {
	n := k.asked.Add(1)
	turn := n / k.every % 2
	if n%k.every != 0 {
		res, err := http.DefaultTransport.RoundTrip(req)
		k.noteFirst(req, res)
		return res, err
	}
	if turn == 0 {
		return http.DefaultTransport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			WroteRequest: func(sent httptrace.WroteRequestInfo) {
				if sent.Err == nil {
					// Some are still reading then, and some have committed.
					time.Sleep(rand.N(6 * time.Millisecond))
					atomic.AddInt64(&k.during, 1)
					k.server.kill()
				}
			},
		})))
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r, err := read(res)
	if err != nil || r.status != http.StatusCreated {
		return nil, errKilled
	}
	k.server.kill() // at once: an answer that was sent before its commit would be a lie now
	atomic.AddInt64(&k.after, 1)
	k.noteFirst(req, res)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard[req.Header.Get("Idempotency-Key")] = r
	return nil, errKilled
}

func (k *killer) noteFirst(req *http.Request, res *http.Response) {
	if res == nil || res.StatusCode != http.StatusCreated || res.Header.Get("Idempotent-Replayed") != "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.first[req.Header.Get("Idempotency-Key")] = true
}
