package forupdate

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var (
	_ lease.Registry = (*Store)(nil)
	_ lease.Notifier = (*Store)(nil)
)

// Register registers a process as waiting for keys. Without registrations, a process would have to
// assume that another waits for every key, and keep making room for it.
func (s *Store) Register(ctx context.Context, process lease.Owner, identity string, keys []string, d time.Duration) error {
	return s.rows.Register(ctx, process, identity, keys, d)
}

// Unregister removes the registration.
func (s *Store) Unregister(ctx context.Context, process lease.Owner, keys []string) error {
	return s.rows.Unregister(ctx, process, keys)
}

// Awaited reports for each key whether another process waits for it.
func (s *Store) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	return s.rows.Awaited(ctx, process, keys)
}

// Listen hears of released keys. It does not hear of a key whose holder has died. It borrows one
// more connection of the pool, if there is one to spare.
func (s *Store) Listen(ctx context.Context, heard func(key string)) error {
	return s.rows.Listen(ctx, heard)
}

// Announce notifies the listeners.
func (s *Store) Announce(ctx context.Context, keys []string) error {
	return s.rows.Announce(ctx, keys)
}
