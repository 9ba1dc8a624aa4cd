package failover

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// turnsReadOnly has the primary take no writes while a lock is held and waited for, and then take
// them again.
func turnsReadOnly(t *testing.T, pool func() *sql.DB, d dialect.Dialect, turn func(on bool)) {
	open := func(ttl time.Duration) *rowlock.Client {
		c, err := rowlock.Open(pool(), d, servertest.Config(servertest.WithTTL(ttl)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	// A call that waits outlasts a server that takes no writes for its TTL, which is longer than all
	// that follows takes.
	holder, other := open(3*time.Second), open(2*patience)
	held, err := holder.Lock(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}
	waiter := waits(t, other, "held")
	turn(true)
	servertest.Eventually(t, "a call to be refused", func() bool { return readOnly(t, other, "free") })
	ended := held.Context()
	select {
	case <-ended.Done():
	case <-time.After(patience):
		t.Fatal("a lock that cannot be renewed goes on")
	}
	if cause := context.Cause(ended); !errors.Is(cause, rowlock.ErrLost) {
		t.Errorf("the lock ended with %v, want ErrLost", cause)
	}
	// Its lease expires now, and polls find the key free.
	for range 5 {
		readOnly(t, other, "held")
	}
	waiter.stillWaits(t)
	turn(false)
	servertest.Eventually(t, "the server to take writes", func() bool {
		l, err := holder.TryLock(t.Context(), "free")
		return err == nil && l.Unlock(t.Context()) == nil
	})
	next := waiter.granted(t)
	if next.Token() <= held.Token() {
		t.Errorf("granted with token %d after %d", next.Token(), held.Token())
	}
	if err := next.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// readOnly tries a key, which must not be granted. It reports whether the error says why.
func readOnly(t *testing.T, c *rowlock.Client, key string) bool {
	t.Helper()
	l, err := c.TryLock(t.Context(), key)
	switch {
	case err == nil && key == "held":
		t.Fatalf("granted with token %d by a server that takes no writes", l.Token())
	case err == nil: // it does not refuse yet
		_ = l.Unlock(t.Context())
	case errors.Is(err, rowlock.ErrUnknown):
		t.Errorf("the outcome is called unknown: %v", err)
	}
	return errors.Is(err, rowlock.ErrReadOnly)
}
