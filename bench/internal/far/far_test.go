package far

import (
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"
)

const away = 3 * time.Millisecond

// farAway is for a test in which a busy machine may take some time for each parcel.
const farAway = 30 * time.Millisecond

// echo answers each byte with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

// from has a server seen from afar until the test ends.
func from(t *testing.T, address string, away time.Duration) net.Conn {
	t.Helper()
	in, parent := io.Pipe()
	heard, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve([]Place{{address, away}}, in, out) }()
	t.Cleanup(func() {
		_ = parent.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var at []string
	if err := json.NewDecoder(heard).Decode(&at); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", at[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAnAnswerComesNoSoonerThanTheWayThereAndBack(t *testing.T) {
	c := from(t, echo(t), away)
	for range 5 {
		began := time.Now()
		if _, err := c.Write([]byte("a")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 2*away {
			t.Errorf("the answer came after %s", took)
		}
	}
}

// A network that kept one parcel after the other would make pipelines slow that are not.
func TestWhatIsSentBeforeAnAnswerIsUnderwayTogether(t *testing.T) {
	const parcels = 200
	c := from(t, echo(t), farAway)
	began := time.Now()
	go func() {
		for range parcels {
			_, _ = c.Write([]byte("a"))
			time.Sleep(50 * time.Microsecond) // a parcel each, or TCP makes one of them
		}
	}()
	if _, err := io.ReadFull(c, make([]byte, parcels)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took >= parcels*farAway {
		t.Errorf("%d parcels took %s", parcels, took)
	}
}
