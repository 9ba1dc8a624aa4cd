package wlock

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// Store is a lease.Store over a cluster, for rowlock.New. It locks mutexes. Close it after the
// client.
type Store struct {
	c *Client
	// extend asks for a lease to last longer. Tests put RENEW there.
	extend func(ctx context.Context, a Ask) (Grant, error)

	mu        sync.Mutex
	book      map[attempt]*entry
	holders   map[string]*entry
	room      int // how many entries there may be before those that are of no use are looked for
	listeners map[*listener]bool
	sights    map[string]sight
}

var (
	_ lease.Store    = (*Store)(nil)
	_ lease.Notifier = (*Store)(nil)
)

// Open connects to a cluster, as New does.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	c, err := New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return NewStore(c), nil
}

// NewStore returns a store over a client, which it closes.
func NewStore(c *Client) *Store {
	return &Store{
		c: c, extend: c.TryLock, book: make(map[attempt]*entry), holders: make(map[string]*entry),
		listeners: make(map[*listener]bool), sights: make(map[string]sight),
	}
}

// Close ends the connections, and with them what the store does by itself.
func (s *Store) Close() error { return s.c.Close() }

// wireKey is a key as the cluster has it: bytes that servers cannot echo, control characters and
// the percent sign are written as %XX. All other keys are those of Java clients.
func wireKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// each answers items side by side: their requests share a connection. The error of a batch of one
// is the call's own.
func each[Q, A any](s *Store, ctx context.Context, items []Q, one func(context.Context, Q) (A, error), failed func(error) A) (
	[]A, error,
) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rowlock: wlock: %w", err)
	}
	if s.c.ctx.Err() != nil {
		return nil, errClosed
	}
	answers := make([]A, len(items))
	answer := func(i int) error {
		a, err := one(ctx, items[i])
		if answers[i] = a; err != nil {
			answers[i] = failed(err)
		}
		return err
	}
	if len(items) == 1 {
		return answers, answer(0)
	}
	var all sync.WaitGroup
	for i := range items {
		all.Go(func() { _ = answer(i) })
	}
	all.Wait()
	return answers, nil
}

// Acquire asks for each key once. A repeated request of an owner that has the key returns its first
// token. A key that the server refuses is refused on that server's word: it may have been released
// a moment ago.
func (s *Store) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return each(s, ctx, reqs, s.acquire, func(err error) lease.Acquired { return lease.Acquired{Err: err} })
}

// Renew extends leases by acquiring them again. See the package comment.
func (s *Store) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return each(s, ctx, reqs, s.renew, func(err error) lease.Renewed { return lease.Renewed{Err: err} })
}

// Release ends leases. The token of one is that which Acquire has returned.
func (s *Store) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return each(s, ctx, leases, s.release, func(err error) lease.Released { return lease.Released{Err: err} })
}
