package measure

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// remembered is of how many keys the last release is known, unless two share a place.
const remembered = 1024

// HandOvers finds grants to calls that waited while another call of this process released the key.
// T is what a release leaves for its successor.
//
// Its memory is bounded: each key has a place by its hash, and a release of another key with the
// same place takes it. The hand-over of the first is then not found.
type HandOvers[T any] struct {
	seed   maphash.Seed
	places [remembered]place[T]
}

// place has the last release of a key.
type place[T any] struct {
	mu    sync.Mutex
	key   string
	token lease.Token // that was released
	at    time.Time
	by    T
}

// NewHandOvers returns a memory without releases.
func NewHandOvers[T any]() *HandOvers[T] { return &HandOvers[T]{seed: maphash.MakeSeed()} }

// Releasing says that a holder of this process is about to release a key. The grant may be told
// before the release has returned, so that a call after it would come too late.
func (h *HandOvers[T]) Releasing(key string, token lease.Token, at time.Time, by T) {
	p := h.place(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.token, p.at, p.by = key, token, at, by
}

// Acquired says that a call got the key, after a wait that began at began. It returns the release
// that the call waited for; ok is false if none is known. Every grant raises the token by one, so
// that a grant to another process in between is not mistaken for it. Readers share a token, and
// have one release to wait for.
func (h *HandOvers[T]) Acquired(
	key string, token lease.Token, began time.Time,
) (at time.Time, by T, ok bool) {
	p := h.place(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.key != key || p.token+1 != token || !began.Before(p.at) {
		return at, by, false
	}
	return p.at, p.by, true
}

func (h *HandOvers[T]) place(key string) *place[T] {
	return &h.places[maphash.String(h.seed, key)%remembered]
}
