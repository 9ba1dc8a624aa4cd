package rowlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// A hand-over is refused when the lease is lost, and when the key has no token left for another: then it was not lost, and is to be freed.
func TestAHandOverThatIsRefusedIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		waiting := wait(t, c, "k")
		s.pass = func(_ context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			return make([]lease.Acquired, len(items)), nil
		}
		began := time.Now()
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
		if w := <-waiting; w.err != nil || time.Since(began) > time.Second {
			t.Errorf("who waits got it after %v: %v", time.Since(began), w.err)
		}
	})
}

func TestAHandOverOfALostLeaseSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		waiting := wait(t, c, "k")
		r := record(t, s, "k")
		if _, err := s.Store.Release(t.Context(), []lease.Lease{r.Lease}); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		if w := <-waiting; w.err != nil {
			t.Error(w.err)
		}
	})
}
