package election_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

func TestLeadsContextCarriesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stand(t, clienttest.Client(t, clienttest.NewScript(), nil))
		first := a.next(0)
		if l, ok := rowlock.FromContext(first.ctx); !ok || l != first.l {
			t.Errorf("it carries %v, %v", l, ok)
		}
		a.retire(first)
	})
}

// A lease that was lost while lead drained is told, also if the bound has passed since.
func TestALossWhileALeadDrainsForTooLongIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		s.OnRenew = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return nil, clienttest.ErrDown
		}
		a := stand(t, clienttest.Client(t, s, nil), election.Drain(10*clienttest.TTL))
		first := a.next(0)
		a.stop(errShutdown)
		time.Sleep(11 * clienttest.TTL)
		first.returns(nil)
		clienttest.WantIs(t, "Run", a.ended(0), rowlock.ErrLost, election.ErrDrain)
	})
}

// A preferred candidate that waits does nothing, however long, and its client may have bounds for
// those that do.
func TestAPreferredCandidateMayWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		a := stand(t, clienttest.Client(t, s, nil), election.Prefer(true))
		first := a.next(0)
		b := stand(t, clienttest.Client(t, s, &rowlock.Config{
			MaxIdle: time.Minute, MaxHold: time.Hour, TTL: clienttest.TTL,
		}), election.Prefer(true))
		time.Sleep(24 * time.Hour)
		if told := b.told(); len(told) > 0 {
			t.Errorf("told: %v", told)
		}
		b.retire(nil)
		a.retire(first)
	})
}
