package rig

import (
	"bufio"
	"io"
	"net"
	"testing"
)

// echo answers each line with itself.
func echo(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(c, c)
		_ = c.Close()
	}()
	return l.Addr().String()
}

func TestWhatIsSentAtOnceIsOneRoundTrip(t *testing.T) {
	w := new(Wire)
	c, err := w.Dial(t.Context(), "tcp", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	answers := bufio.NewReader(c)
	say := func(lines ...string) {
		for _, line := range lines {
			if _, err := io.WriteString(c, line); err != nil {
				t.Fatal(err)
			}
		}
		for range lines {
			if _, err := answers.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	say("take\n")
	say("clear\n")
	if got := w.Trips(); got != 2 {
		t.Errorf("one after the other: %d round trips, not 2", got)
	}
	if _, err := io.WriteString(c, "take\nclear\n"); err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 1) // an answer that comes in many pieces is one
	for range "take\nclear\n" {
		if _, err := io.ReadFull(c, piece); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.Trips(); got != 3 {
		t.Errorf("pipelined: %d round trips, not 3", got)
	}
}
