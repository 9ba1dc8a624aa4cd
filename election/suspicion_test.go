package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

// unsuspecting is a client whose suspicions fail the test.
func unsuspecting(t *testing.T, s lease.Store) *rowlock.Client {
	cfg := &rowlock.Config{}
	cfg.Hooks.Suspected = func(_ context.Context, by rowlock.Suspicion) { t.Errorf("suspected: %+v", by) }
	return clienttest.Client(t, s, cfg)
}

// A candidate stands beside what its process does, and does not keep it from that.
func TestALeaderThatWaitsForWhatACandidateHoldsIsNoSuspicion(t *testing.T) {
	for name, opts := range map[string][]election.Option{
		"": nil, "preferred": {election.Prefer(true)}, "not preferred": {election.Prefer(false)},
	} {
		t.Run(name, func(t *testing.T) {
			clienttest.Bubble(t, func(t *testing.T, _ *rowlock.Client, s *clienttest.Script) {
				one, two := unsuspecting(t, s), unsuspecting(t, s)
				a := stand(t, one, opts...)
				first := a.next(soon)
				b := stand(t, two, opts...)
				third := stand(t, one, opts...) // of the leader's own process
				key := clienttest.Take(t, two, "k")
				by := clienttest.WaitIn(t, first.ctx, one, "k")
				time.Sleep(time.Minute)
				clienttest.Unlock(t, key)
				got := <-by
				clienttest.WantIs(t, "the leader's call", got.Err)
				clienttest.Unlock(t, got.Lock)
				third.retire(nil)
				b.retire(nil)
				a.retire(first)
			})
		})
	}
}

// A candidate that stands under a lock, and for as long, does keep it: that is a cycle.
func TestACandidateUnderALockThatTheLeaderWaitsForIsADeadlock(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		a := stand(t, c)
		first := a.next(0)
		other := clienttest.Client(t, s, nil)
		key := clienttest.Take(t, other, "k")
		stood := make(chan error, 1)
		go func() {
			stood <- election.Run(key.Context(), other, "boss", func(context.Context, *rowlock.Lock) error {
				return nil
			})
		}()
		time.Sleep(time.Second) // the last to wait is ended
		_, err := c.Lock(first.ctx, "k")
		clienttest.WantIs(t, "the leader's call", err, rowlock.ErrDeadlock)
		clienttest.Unlock(t, key)
		<-stood
		a.retire(first)
	})
}
