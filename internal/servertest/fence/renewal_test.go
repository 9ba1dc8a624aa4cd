package fence

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// fencedWork keeps a row locked: workers share one lock, and each runs fenced transactions of a
// length, one right after the other.
type fencedWork struct {
	workers int
	lasts   time.Duration
}

func (w fencedWork) String() string { return fmt.Sprintf("%d x %s", w.workers, w.lasts) }

// Two workers leave no renewal a moment: when one commits, the other has been waiting for the row.
var backToBack = []fencedWork{
	{2, time.Millisecond}, {2, 20 * time.Millisecond}, {2, 500 * time.Millisecond},
}

// soaked run as well if there are minutes.
var soaked = []fencedWork{
	{1, time.Millisecond}, {1, 20 * time.Millisecond}, {1, 500 * time.Millisecond},
}

// The main use of a lock does not lose it: the fences themselves renew the lease, whether a
// renewal passes or not. ROWLOCK_SOAK_MS is the duration; `make soak` has ten minutes.
func TestFencedTransactionsBackToBackKeepTheLock(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	work, ms := backToBack, servertest.FromEnvironment("ROWLOCK_SOAK_MS", 0)
	if ms >= 60_000 {
		work = append(work, soaked...)
	}
	runs := max(time.Duration(ms)*time.Millisecond, 2*ttl)
	for _, w := range work {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			servertest.Each(t, func(s *servertest.Scene) {
				l := s.Take(s.Client(servertest.WithTTL(ttl)), "k")
				end := make(chan struct{})
				wait := keepFencing(s, l, w, end)
				defer wait()
				defer close(end)
				neverExpires(s, l, runs)
			})
		})
	}
}

// keepFencing does w until end is closed. wait returns when the last transaction is over.
func keepFencing(s *servertest.Scene, l *rowlock.Lock, w fencedWork,
	end <-chan struct{},
) (wait func()) {
	var working sync.WaitGroup
	for range w.workers {
		working.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-l.Context().Done():
					return
				default:
				}
				fencedFor(s, l, w.lasts)
			}
		})
	}
	return working.Wait
}

// fencedFor is one fenced transaction.
func fencedFor(s *servertest.Scene, l *rowlock.Lock, lasts time.Duration) {
	ctx := context.WithoutCancel(s.Context())
	tx, err := s.Env.DB.BeginTx(ctx, nil)
	if err != nil {
		if !s.Is("sqlite") { // where one worker can keep the other out for longer than its busy_timeout
			s.Errorf("begin: %v", err)
		}
		return
	}
	if err := l.Fence(ctx, tx); err != nil {
		s.Errorf("fence: %v", err)
		_ = tx.Rollback()
		return
	}
	s.Elapse(lasts)
	if err := tx.Commit(); err != nil {
		s.Errorf("commit: %v", err)
	}
}

// neverExpires watches the committed expiry of l, by the database's clock.
func neverExpires(s *servertest.Scene, l *rowlock.Lock, span time.Duration) {
	s.Helper()
	least := time.Hour
	for began := time.Now(); time.Since(began) < span; s.Elapse(20 * time.Millisecond) {
		if cause := context.Cause(l.Context()); cause != nil {
			s.Fatalf("the lock ended after %s: %v", time.Since(began).Round(time.Millisecond), cause)
		}
		left := servertest.LeaseLeft(s.T, s.Env, l.Key())
		if least = min(least, left); left <= 0 {
			s.Fatalf("the lease expired in the database %s after the lock was taken",
				time.Since(began).Round(time.Millisecond))
		}
	}
	s.Logf("at least %s remained", least.Round(time.Millisecond))
}

// One lock's fences delay the renewal of no other, even if all are renewed in one statement. In
// SQLite every transaction has the file's one write lock, so that renewals of other locks wait as
// well.
func TestFencesBackToBackHoldUpNoOtherRenewal(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	servertest.EachServer(t, func(s *servertest.Scene) {
		c := s.Client(servertest.WithTTL(ttl))
		others, err := c.LockAll(s.Context(), []string{"a", "b", "y", "z"})
		s.OK(err)
		l := s.Take(c, "k")
		end := make(chan struct{})
		wait := keepFencing(s, l, fencedWork{2, 20 * time.Millisecond}, end)
		defer wait()
		defer close(end)
		for began := time.Now(); time.Since(began) < 2*ttl; s.Elapse(50 * time.Millisecond) {
			for _, key := range others.Keys() {
				if left := servertest.LeaseLeft(s.T, s.Env, key); left < ttl/6 {
					s.Fatalf("%q was not renewed: %s of %s remain", key, left, ttl)
				}
			}
		}
		s.OK(others.Unlock(s.Context()))
	})
}
