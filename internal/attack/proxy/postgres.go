package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"sync"
	"time"
)

// Postgres is version 3 of its protocol, without TLS. Replies to cancel requests do not come.
func Postgres(late time.Duration) Protocol {
	return func() talk { return &postgres{late: late, names: make(map[string]string)} }
}

type postgres struct {
	late    time.Duration
	started bool
	names   map[string]string // kinds of prepared statements; of read alone

	mu   sync.Mutex
	head []byte // of a message of the server's, whose length is not known yet
	left int    // bytes of its body to come
}

// read collects messages up to one that the server answers with ReadyForQuery.
func (p *postgres) read(in *bufio.Reader) (s Statement, err error) {
	s.Late = func() time.Duration { return p.late }
	if !p.started {
		p.started = true
		return s, p.startup(in, &s)
	}
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(in, head); err != nil {
			return s, err
		}
		body := make([]byte, max(int(binary.BigEndian.Uint32(head[1:]))-4, 0))
		if _, err := io.ReadFull(in, body); err != nil {
			return s, err
		}
		s.bytes = append(append(s.bytes, head...), body...)
		p.note(&s, head[0], body)
		switch head[0] {
		case 'S', 'Q', 'X', 'H', 'p', 'c', 'f':
			return s, nil
		}
	}
}

func (p *postgres) startup(in *bufio.Reader, s *Statement) error {
	head := make([]byte, 4)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	body := make([]byte, max(int(binary.BigEndian.Uint32(head))-4, 0))
	_, err := io.ReadFull(in, body)
	s.bytes = append(head, body...)
	return err
}

// note finds out what a statement executes: the text of a simple query, or that of the statement
// that is bound.
func (p *postgres) note(s *Statement, message byte, body []byte) {
	switch message {
	case 'Q':
		s.Kind = kind(cstring(&body))
	case 'P':
		name := cstring(&body)
		p.names[name] = kind(cstring(&body))
	case 'B':
		_ = cstring(&body) // the portal
		s.Kind = p.names[cstring(&body)]
	}
}

func cstring(b *[]byte) string {
	text, rest, _ := bytes.Cut(*b, []byte{0})
	*b = rest
	return string(text)
}

// reply follows the frames of the server's messages.
func (p *postgres) reply(b []byte) (ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		if p.left > 0 {
			n := min(p.left, len(b))
			p.left, b = p.left-n, b[n:]
			ready = ready || p.left == 0 && p.head[0] == 'Z'
			if p.left == 0 {
				p.head = p.head[:0]
			}
			continue
		}
		p.head, b = append(p.head, b[0]), b[1:]
		if len(p.head) == 5 {
			p.left = int(binary.BigEndian.Uint32(p.head[1:])) - 4
			if p.left <= 0 {
				p.left, p.head = 0, p.head[:0]
			}
		}
	}
	return ready
}
