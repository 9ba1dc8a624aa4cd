package forupdate

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var (
	_ lease.Interest = (*Store)(nil)
	_ lease.Notifier = (*Store)(nil)
)

// Await notes that a process waits for keys. Without that, a process would have to take it that another waits for every key, and keep
// making room for it.
func (s *Store) Await(ctx context.Context, process lease.Owner, keys []string, d time.Duration) error {
	return s.rows.Await(ctx, process, keys, d)
}

// Desist takes that back.
func (s *Store) Desist(ctx context.Context, process lease.Owner, keys []string) error {
	return s.rows.Desist(ctx, process, keys)
}

// Awaited reports for each key whether another process waits for it.
func (s *Store) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	return s.rows.Awaited(ctx, process, keys)
}

// Listen hears of keys that were released; of one whose holder has died nobody tells. It borrows one more connection of the pool, where
// there is one to spare.
func (s *Store) Listen(ctx context.Context, heard func(key string)) error {
	return s.rows.Listen(ctx, heard)
}

// Announce tells those who listen.
func (s *Store) Announce(ctx context.Context, keys []string) error {
	return s.rows.Announce(ctx, keys)
}
