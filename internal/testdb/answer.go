package testdb

import (
	"io"
	"sync"
)

// LoseAnswer has the server answer the n-th request from now, counted from 1, and the client never
// learn the answer: the connection ends there. What the client sends until the server says
// something is one request, so that encryption does not matter.
func (h *Hole) LoseAnswer(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lose = n
}

// asked counts a request, and reports whether its answer is to be lost.
func (h *Hole) asked() (lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost = h.lose == 1
	h.lose = max(0, h.lose-1)
	return lost
}

// link is a connection through a hole.
type link struct {
	h *Hole

	mu           sync.Mutex
	asking, lost bool
}

// requests passes on what the client sends, and counts it before.
type requests struct {
	io.WriteCloser
	link *link
}

func (r requests) Write(b []byte) (int, error) {
	l := r.link
	l.mu.Lock()
	if !l.asking {
		l.asking, l.lost = true, l.h.asked()
	}
	l.mu.Unlock()
	return r.WriteCloser.Write(b)
}

// answers passes on what the server says, except for the answer that is to be lost.
type answers struct {
	io.WriteCloser
	link *link
}

func (a answers) Write(b []byte) (int, error) {
	a.link.mu.Lock()
	a.link.asking = false
	lost := a.link.lost
	a.link.mu.Unlock()
	if lost {
		return 0, io.ErrClosedPipe
	}
	return a.WriteCloser.Write(b)
}
