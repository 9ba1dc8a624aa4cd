package proxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"
	"time"
)

// MySQL is its classic protocol, without TLS and compression.
func MySQL(late time.Duration) Protocol {
	return func() talk { return &mysql{late: late, names: make(map[uint32]string)} }
}

// The commands whose replies and texts matter.
const (
	comQuery   = 0x03
	comPrepare = 0x16
	comExecute = 0x17
)

type mysql struct {
	late time.Duration

	mu        sync.Mutex
	names     map[uint32]string
	preparing string // the kind that the next reply has a number for
}

// read returns one packet. A command has the sequence number 0; what else a client sends belongs to
// the handshake.
func (m *mysql) read(in *bufio.Reader) (s Statement, err error) {
	s.Late = func() time.Duration { return m.late }
	head := make([]byte, 4)
	if _, err := io.ReadFull(in, head); err != nil {
		return s, err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	if _, err := io.ReadFull(in, body); err != nil {
		return s, err
	}
	s.bytes = append(head, body...)
	if head[3] == 0 && len(body) > 0 {
		m.note(&s, body[0], body[1:])
	}
	return s, nil
}

func (m *mysql) note(s *Statement, command byte, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.preparing = ""
	switch command {
	case comQuery:
		s.Kind = kind(string(body))
	case comPrepare:
		m.preparing = kind(string(body))
	case comExecute:
		if len(body) >= 4 {
			s.Kind = m.names[binary.LittleEndian.Uint32(body)]
		}
	}
}

// reply takes the first bytes of an answer for its end: the server sends them when it has executed
// the statement. It does so for each statement of a text with several, of which rowlock sends none.
func (m *mysql) reply(b []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.preparing != "" && len(b) >= 9 && b[4] == 0 {
		m.names[binary.LittleEndian.Uint32(b[5:9])] = m.preparing
		m.preparing = ""
	}
	return true
}
