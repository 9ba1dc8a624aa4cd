package proxy

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// link is one connection.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	talk           talk

	once   sync.Once
	closed chan struct{}

	mu      sync.Mutex
	muted   bool          // replies are thrown away
	allowed int           // but for so many bytes
	replied chan struct{} // gets the end of each reply while muted
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{
		proxy: p, client: client, server: server, talk: p.protocol(),
		closed: make(chan struct{}), replied: make(chan struct{}, 1),
	}
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.closed)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// run returns when both directions have ended.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(func() { defer l.close(); l.up() })
	both.Go(func() { defer l.close(); l.down() })
	both.Wait()
}

// up reads a statement at a time.
func (l *link) up() {
	in := bufio.NewReaderSize(l.client, 1<<16)
	for {
		s, err := l.talk.read(in)
		if err != nil || !l.proxy.pass(Up, l) {
			return
		}
		fate := Pass
		if s.Kind != "" && l.proxy.decide != nil {
			fate = l.proxy.decide(s)
		}
		if !l.meet(fate, s) {
			return
		}
	}
}

// replyFor bounds how long a cut waits for the reply that it keeps back: a statement can wait for a
// row lock.
const replyFor = 10 * time.Second

// meet does to a statement what its fate is, and reports whether the link goes on.
func (l *link) meet(f Fate, s Statement) bool {
	switch f {
	case Unsent:
		return false
	case Half:
		_, _ = l.server.Write(s.bytes[:len(s.bytes)/2])
		return false
	case ReplyLost, ReplyHalf:
		l.mute(map[Fate]int{ReplyHalf: 3}[f])
		l.deliver(s)
		return false
	case Late:
		l.mute(0)
		_ = l.client.Close()
		select {
		case <-time.After(s.Late()):
			l.deliver(s)
		case <-l.closed:
		}
		return false
	}
	_, err := l.server.Write(s.bytes)
	return err == nil
}

func (l *link) mute(allowed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.muted, l.allowed = true, allowed
}

// deliver returns when the server has executed a statement of a muted link.
func (l *link) deliver(s Statement) {
	if _, err := l.server.Write(s.bytes); err != nil {
		return
	}
	select {
	case <-l.replied:
	case <-l.closed:
	case <-time.After(replyFor):
	}
}

// down passes replies on.
func (l *link) down() {
	buffer := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buffer)
		if n > 0 && !l.answer(buffer[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

func (l *link) answer(b []byte) bool {
	over := l.talk.reply(b)
	l.mu.Lock()
	muted := l.muted
	if muted {
		b = b[:min(l.allowed, len(b))]
		l.allowed -= len(b)
	}
	l.mu.Unlock()
	if len(b) > 0 && !muted && !l.proxy.pass(Down, l) {
		return false
	}
	if _, err := l.client.Write(b); err != nil && !muted {
		return false
	}
	if muted && over {
		select {
		case l.replied <- struct{}{}:
		default:
		}
	}
	return true
}
