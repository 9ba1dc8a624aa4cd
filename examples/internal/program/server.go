package program

import (
	"bufio"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Server is a program that listens, as its operator sees it: it is started, killed, and started
// again on the same address. It says "listening on" and its URL first.
type Server struct {
	testing.TB
	URL, Source string

	path string
	args []string
	mu   sync.Mutex
	cmd  *exec.Cmd
}

// NewServer starts a program on the database that its -db names. It is killed when the test ends.
func NewServer(tb testing.TB, path, source string, args ...string) *Server {
	tb.Helper()
	s := &Server{TB: tb, Source: source, path: path, args: append([]string{"-db", source}, args...)}
	s.start("127.0.0.1:0")
	tb.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	return s
}

// start returns when the server listens.
func (s *Server) start(addr string) {
	s.cmd = exec.Command(s.path, append([]string{"-addr", addr}, s.args...)...)
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
	if s.URL == "" { // it stays what it was
		s.URL = url
	}
}

// Kill ends the server with SIGKILL, and starts it again behind the caller's back.
func (s *Server) Kill() {
	s.mu.Lock()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	go func() {
		defer s.mu.Unlock()
		s.start(strings.TrimPrefix(s.URL, "http://"))
	}()
}

// Up returns when the server that was killed last is there again.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
}
