package fence

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/wire"
)

// log keeps the newest line of each message, in JSON.
type log struct {
	mu    sync.Mutex
	lines map[string]string
}

func (l *log) Write(line []byte) (int, error) {
	var said struct{ Msg string }
	err := json.Unmarshal(line, &said)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[said.Msg] = string(bytes.TrimSpace(line))
	return len(line), err
}

func (l *log) all() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.lines)
}

// Programs that read logs find the attributes of the first release, and tokens as text: in an era
// of today no double holds one.
func TestAttributesOfTheLogAreAsReleased(t *testing.T) {
	t.Parallel()
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		s.Env.ForgetEras(s)
		said := &log{lines: make(map[string]string)}
		locks := s.Client(func(c *rowlock.Config) {
			c.Logger = slog.New(slog.NewJSONHandler(said, nil))
			c.Identity = "web-1/4711/orders"
		})
		l := s.Take(locks, "k")
		if l.Token() < 1<<53 {
			s.Errorf("token %d is of no era of today", l.Token())
		}
		_, err := locks.ForceRelease(s.Context(), "k", rowlock.Force{Reason: "stuck", By: "ada"})
		s.OK(err)
		_ = l.Unlock(context.WithoutCancel(s.Context()))
		want := []string{"lock ended", "taken from its holder", "taken away by an operator", "tokens go on"}
		s.Eventually("the lines", func() bool { return len(said.all()) >= len(want) })
		f := wire.New("The attributes of log lines that name a token. Texts may change in any release.",
			"programs that read logs", "log lines")
		lines := said.all()
		for _, part := range want {
			for _, msg := range slices.Sorted(maps.Keys(lines)) {
				if strings.Contains(msg, part) {
					f.JSON(s, part, lines[msg], "msg", "ago", "server", "cause")
					delete(lines, msg)
				}
			}
		}
		for msg, line := range lines {
			s.Errorf("%q is in no vector: %s", msg, line)
		}
		f.Match(s, "../../../testdata/wire/log.txt")
	})
}
