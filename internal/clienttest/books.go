package clienttest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// Books are what hooks have told of the locks of one client.
type Books struct {
	mu   sync.Mutex
	open map[grant]int // locks that were acquired, less those that have ended
	all  int
}

// Hooks keep the books.
func (b *Books) Hooks() rowlock.Hooks {
	ended := func(_ context.Context, key string, token rowlock.Token) { b.add(key, token, -1) }
	return rowlock.Hooks{
		Acquired: func(_ context.Context, key string, token rowlock.Token, _ time.Duration) { b.add(key, token, 1) },
		Released: func(ctx context.Context, key string, token rowlock.Token, _ time.Duration) { ended(ctx, key, token) },
		Lost:     func(ctx context.Context, key string, token rowlock.Token, _ error) { ended(ctx, key, token) },
	}
}

func (b *Books) add(key string, token rowlock.Token, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = make(map[grant]int)
	}
	b.open[grant{key, token}] += n
	b.all += max(0, n)
}

// Close fails the test unless every lock has been told acquired and ended, once each, and c counts
// as many, none that is held, no call that waits, and no orphan.
func (b *Books) Close(t *testing.T, c *rowlock.Client) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for of, n := range b.open {
		if n != 0 {
			t.Errorf("%q, token %d: %d more were told acquired than ended", of.key, of.token, n)
		}
	}
	s := c.Stats()
	if s.Held != 0 || s.Waiting != 0 || s.OrphansOpen != 0 || s.Acquired != int64(b.all) || s.Acquired != s.Released+s.Lost {
		t.Errorf("%d locks were told acquired; %+v", b.all, s)
	}
}
