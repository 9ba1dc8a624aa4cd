package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/command"
)

// board shows the chart: on a terminal while it grows, with how far the present sale has come;
// elsewhere once, at the end.
type board struct {
	out      io.Writer
	terminal bool
	buyers   int
	served   atomic.Int64 // in the present sale
	all      []result
	drawn    int // lines that are to be drawn over
}

func newBoard(out io.Writer, cfg settings) *board {
	return &board{out: out, terminal: command.IsTerminal(out), buyers: cfg.buyers}
}

// watch draws until what it returns is called.
func (b *board) watch(name string) (done func()) {
	b.served.Store(0)
	if !b.terminal {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			b.draw(fmt.Sprintf("\n%s: %d of %d buyers served\n", name, b.served.Load(), b.buyers))
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

func (b *board) add(r result) { b.all = append(b.all, r) }

// draw puts the chart, and below says what, in the place of what it drew before.
func (b *board) draw(below string) {
	var text strings.Builder
	if b.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\x1b[J", b.drawn)
	}
	chart(&text, b.all)
	text.WriteString(below)
	b.drawn = strings.Count(text.String(), "\n")
	_, _ = io.WriteString(b.out, text.String())
}

// end draws all of it, and returns an error if a way has sold an item twice, or lost one.
func (b *board) end() (err error) {
	b.draw("")
	for _, r := range b.all {
		err = errors.Join(err, r.check())
	}
	return err
}
