package forupdate

import (
	"context"
	"sync"
)

// turns lets one attempt per key and process ask the database, because several would block one
// another there, each with a connection.
type turns struct {
	mu   sync.Mutex
	keys map[string]*turn
}

type turn struct {
	token chan struct{} // full while an attempt is under way
	users int
}

// enter waits until no other attempt is under way.
func (t *turns) enter(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	if t.keys == nil {
		t.keys = make(map[string]*turn)
	}
	u := t.keys[key]
	if u == nil {
		u = &turn{token: make(chan struct{}, 1)}
		t.keys[key] = u
	}
	u.users++
	t.mu.Unlock()
	select {
	case u.token <- struct{}{}:
		return func() { <-u.token; t.forget(key, u) }, nil
	case <-ctx.Done():
		t.forget(key, u)
		return nil, ctx.Err()
	}
}

func (t *turns) forget(key string, u *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.users--; u.users == 0 {
		delete(t.keys, key)
	}
}
