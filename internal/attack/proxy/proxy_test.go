package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// message is one of PostgreSQL's.
func message(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

func startup() []byte { return append(binary.BigEndian.AppendUint32(nil, 8), 0, 3, 0, 0) }

func TestStatementsOfPostgresHaveKinds(t *testing.T) {
	in := bufio.NewReader(bytes.NewReader(slices.Concat(
		startup(),
		message('P', "s1\x00UPDATE /* rowlock renew */ rowlock SET …\x00\x00\x00"), message('D', "Ss1\x00"), message('S', ""),
		message('B', "\x00s1\x00\x00\x00"), message('E', "\x00\x00\x00\x00\x00"), message('S', ""),
		message('Q', "COMMIT\x00"), message('Q', "select n from counter\x00"),
	)))
	p := Postgres(0)()
	for n, want := range []string{"", "", "renew", "commit", "user's select"} {
		if s, err := p.read(in); err != nil || s.Kind != want {
			t.Errorf("%d: got %q, %v, want %q", n, s.Kind, err, want)
		}
	}
}

func TestAReplyOfPostgresEndsWithReady(t *testing.T) {
	p := Postgres(0)()
	whole := slices.Concat(message('C', "UPDATE 1Z\x00"), message('Z', "I"))
	for n := range whole {
		if got, want := p.reply(whole[n:n+1]), n == len(whole)-1; got != want {
			t.Errorf("after %d bytes of %d: %v", n+1, len(whole), got)
		}
	}
	if p.reply(message('C', "SELECT 1\x00")) || !p.reply(message('Z', "I")) {
		t.Error("the second reply is not like the first")
	}
}

func packet(sequence byte, body string) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), 0, sequence}, body...)
}

func TestStatementsOfMySQLHaveKinds(t *testing.T) {
	in := bufio.NewReader(bytes.NewReader(slices.Concat(
		packet(1, "login"), packet(0, "\x16UPDATE /* rowlock renew */ rowlock SET …"), packet(0, "\x17\x05\x00\x00\x00"), packet(0, "\x03COMMIT"),
	)))
	m := MySQL(0)()
	for n, want := range []string{"", "", "renew", "commit"} {
		if s, err := m.read(in); err != nil || s.Kind != want {
			t.Errorf("%d: got %q, %v, want %q", n, s.Kind, err, want)
		}
		if n == 1 {
			m.reply(packet(1, "\x00\x05\x00\x00\x00\x00\x00\x00\x00"))
		}
	}
}

// executor is a server that answers each statement of PostgreSQL's, and remembers what it has
// executed.
type executor struct {
	net.Listener
	mu   sync.Mutex
	done []string
	each chan struct{}
}

func serve(t *testing.T) *executor {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &executor{Listener: l, each: make(chan struct{}, 10)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go e.talk(c)
		}
	}()
	return e
}

func (e *executor) talk(c net.Conn) {
	defer c.Close()
	p, in := Postgres(0)(), bufio.NewReader(c)
	for {
		s, err := p.read(in)
		if err != nil {
			return
		}
		if s.Kind == "" {
			continue
		}
		e.mu.Lock()
		e.done = append(e.done, s.Kind)
		e.mu.Unlock()
		_, _ = c.Write(slices.Concat(message('C', "UPDATE 1\x00"), message('Z', "I")))
		e.each <- struct{}{}
	}
}

func (e *executor) executed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.done)
}

// What a fate does can be told by what the server has executed and by what its client hears.
func TestFates(t *testing.T) {
	reply := slices.Concat(message('C', "UPDATE 1\x00"), message('Z', "I"))
	for _, c := range []struct {
		fate     Fate
		executed bool
		heard    int
	}{
		{Pass, true, len(reply)},
		{Unsent, false, 0},
		{Half, false, 0},
		{ReplyLost, true, 0},
		{ReplyHalf, true, 3},
		{Late, true, 0},
	} {
		t.Run(c.fate.String(), func(t *testing.T) {
			server := serve(t)
			p, err := Listen(server.Addr().String(), Postgres(time.Millisecond), func(Statement) Fate { return c.fate })
			if err != nil {
				t.Fatal(err)
			}
			client := dial(t, p)
			if _, err := client.Write(slices.Concat(startup(), message('Q', "COMMIT\x00"))); err != nil {
				t.Fatal(err)
			}
			heard := make([]byte, c.heard)
			if _, err := io.ReadFull(client, heard); err != nil || !bytes.Equal(heard, reply[:c.heard]) {
				t.Errorf("heard %q, %v", heard, err)
			}
			if c.executed {
				<-server.each
			}
			if c.fate != Pass {
				cut(t, client)
			}
			_ = p.Close()
			if got := len(server.executed()) == 1; got != c.executed {
				t.Errorf("executed: %v", server.executed())
			}
		})
	}
}

func dial(t *testing.T, p *Proxy) net.Conn {
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func cut(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestAStalledDirectionGoesOnWhenHealed(t *testing.T) {
	server := serve(t)
	p, err := Listen(server.Addr().String(), Postgres(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Stall(Down)
	client := dial(t, p)
	if _, err := client.Write(slices.Concat(startup(), message('Q', "COMMIT\x00"))); err != nil {
		t.Fatal(err)
	}
	<-server.each // it was executed
	_ = client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := client.Read(make([]byte, 1)); n > 0 || !isTimeout(err) {
		t.Fatalf("heard %d bytes, %v", n, err)
	}
	_ = client.SetReadDeadline(time.Time{})
	p.Heal()
	if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
		t.Error(err)
	}
	p.Refuse()
	if _, err := io.Copy(io.Discard, client); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("the end was %v", err)
	}
	cut(t, dial(t, p))
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func TestRawPassesWhatThereIs(t *testing.T) {
	in := bufio.NewReader(bytes.NewReader([]byte("any\x00bytes")))
	p := Raw()
	s, err := p.read(in)
	if err != nil || string(s.bytes) != "any\x00bytes" || s.Kind != "" {
		t.Errorf("%q, kind %q, %v", s.bytes, s.Kind, err)
	}
	if _, err := p.read(in); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}
