package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/lease"
)

// show prints what happens, and how fast it goes: on a terminal in a few lines below that are drawn
// anew, elsewhere in a line a second.
type show struct {
	out      io.Writer
	terminal bool
	load     *load
	sent     *atomic.Int64
	began    time.Time

	mu         sync.Mutex
	placements map[string]placement
	drawn      int    // lines that are to be drawn over
	seen       sample // the last one
	now        sample // a second, between the last two
	past       []float64
}

type placement struct {
	epoch int64
	away  bool
}

// sample is a mark for each key, or a rate.
type sample struct {
	at         time.Time
	hot        []float64
	cold, sent float64
}

func newShow(out io.Writer, l *load, sent *atomic.Int64) *show {
	return &show{out: out, terminal: command.IsTerminal(out), load: l, sent: sent, began: time.Now(), placements: make(map[string]placement)}
}

// Write prints above what is drawn.
func (s *show) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	n, err := s.out.Write(p)
	s.draw()
	return n, err
}

func (s *show) line(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

func (s *show) event(format string, args ...any) {
	s.line("%5.1f s  %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// moved is told by each bridge of what it has moved. Two may tell the same, and the later one
// first.
func (s *show) moved(key string, to int, epoch int64, why string) {
	s.mu.Lock()
	news := epoch > s.placements[key].epoch
	if news {
		s.placements[key] = placement{epoch, to != lease.PlacementTable}
	}
	s.mu.Unlock()
	where := "moves to the cluster"
	if to == lease.PlacementTable {
		where = "comes home to the database"
	}
	if news {
		s.event("%s %s (%s; epoch %d)", key, where, why, epoch)
	}
}

func (s *show) awayCount() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range hotKeys {
		if s.placements[key].away {
			n++
		}
	}
	return n
}

// start looks at the counters until ctx ends. The channel is closed when nothing is drawn any more.
func (s *show) start(ctx context.Context) <-chan struct{} {
	s.seen = s.look()
	every, done := time.Second, make(chan struct{})
	if s.terminal {
		every = 400 * time.Millisecond
	}
	go func() {
		defer close(done)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				s.mu.Lock()
				s.wipe()
				s.past = nil // nothing to draw from now on
				s.mu.Unlock()
				return
			case <-t.C:
				s.tick()
			}
		}
	}()
	return done
}

func (s *show) look() sample {
	at := sample{at: time.Now(), cold: float64(s.load.sum(s.load.cold)), sent: float64(s.sent.Load())}
	for _, key := range hotKeys {
		at.hot = append(at.hot, float64(s.load.accounts[key].value.Load()))
	}
	return at
}

func (s *show) tick() {
	at := s.look()
	s.mu.Lock()
	s.now = at.since(s.seen)
	s.seen = at
	s.past = append(s.past, s.now.sent)
	if s.terminal {
		s.wipe()
		s.draw()
		s.mu.Unlock()
		return
	}
	text := s.oneLine()
	s.mu.Unlock()
	s.event("%s", text)
}

func (a sample) since(b sample) sample {
	took := a.at.Sub(b.at).Seconds()
	r := sample{at: a.at, cold: (a.cold - b.cold) / took, sent: (a.sent - b.sent) / took}
	for i := range a.hot {
		r.hot = append(r.hot, (a.hot[i]-b.hot[i])/took)
	}
	return r
}

func (s *show) where(key string) string {
	if s.placements[key].away {
		return "cluster"
	}
	return "database"
}

// oneLine is what fits into a log.
func (s *show) oneLine() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6.0f statements/s | locks/s:", s.now.sent)
	for i, key := range hotKeys {
		fmt.Fprintf(&b, " %s %.0f (%s)", key, s.now.hot[i], s.where(key))
	}
	fmt.Fprintf(&b, " others %.0f", s.now.cold)
	return b.String()
}
