package deadlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Waits that hold nothing record nothing and read nothing, however many they are and however long
// they take.
func TestWaitsThatHoldNothingWriteNothing(t *testing.T) {
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		n := 1000
		if m.Fair {
			n = 100 // each has a ticket
		}
		s.Take(s.Client(), "k "+m.String())
		c, w := client(s, m)
		ctx, cancel := context.WithCancel(s.Context())
		var all sync.WaitGroup
		for range n {
			all.Go(func() { _, _ = c.Lock(ctx, "k "+m.String()) })
		}
		for range 30 {
			s.Elapse(100 * time.Millisecond)
			if n := records(s); n != 0 {
				s.Fatalf("%d rows of waits that hold nothing", n)
			}
		}
		cancel()
		all.Wait()
		wantQuiet(s, w)
	})
}

// A chain that waits for less than a second leaves no trace, however often.
func TestAShortWaitWritesNothing(t *testing.T) {
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		s.Eventually("waits that are short on a busy machine too", func() bool { return shortWaits(s, m) })
	})
}

// shortWaits waits twice for 600 ms. It reports false if a busy machine made one last for longer.
func shortWaits(s *servertest.Scene, m servertest.Mode) bool {
	other := s.Client()
	c, w := client(s, m)
	pulse := s.Pulse()
	mine, longest := s.Take(c, "held "+m.String()), time.Duration(0)
	for range 2 {
		l := s.Take(other, "k "+m.String())
		released := make(chan error, 1)
		time.AfterFunc(600*time.Millisecond, func() { released <- l.Unlock(context.Background()) })
		began := time.Now()
		got, err := c.Lock(mine.Context(), "k "+m.String())
		longest = max(longest, time.Since(began))
		s.OK(err)
		if err := <-released; !errors.Is(err, rowlock.ErrBusy) { // for 5 s, and the wait was long
			s.OK(err)
		}
		s.OK(got.Unlock(s.Context()))
	}
	s.OK(mine.Unlock(s.Context()))
	if longest > 900*time.Millisecond {
		awaitErased(s, pulse)
		return false
	}
	if n := records(s); n != 0 {
		s.Errorf("%d rows of a short wait", n)
	}
	wantQuiet(s, w)
	return true
}

func wantQuiet(s *servertest.Scene, w *watched) {
	s.Helper()
	if a, b, c := w.records.Load(), w.reads.Load(), w.erases.Load(); a+b+c > 0 {
		s.Errorf("%d records, %d readings and %d removals", a, b, c)
	}
}
