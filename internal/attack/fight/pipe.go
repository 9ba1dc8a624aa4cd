package fight

import (
	"context"
	"log/slog"
	"sync"
)

// pipe is a log that takes one line and no more, like a pipe that no process reads. A client must
// renew and end its leases all the same, and close in time.
type pipe struct {
	first   sync.Once
	drained chan struct{}
}

func newPipe() *pipe { return &pipe{drained: make(chan struct{})} }

// Enabled has every line come here.
func (p *pipe) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns the pipe.
func (p *pipe) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup returns the pipe.
func (p *pipe) WithGroup(string) slog.Handler { return p }

// Handle blocks from the second line on.
func (p *pipe) Handle(context.Context, slog.Record) error {
	full := true
	p.first.Do(func() { full = false })
	if full {
		<-p.drained
	}
	return nil
}

// drain lets the goroutine that is in Handle end, when the clients are closed.
func (p *pipe) drain() { close(p.drained) }
