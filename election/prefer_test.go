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

// other is a candidate in a process of its own.
func other(t *testing.T, s lease.Store, preferred bool, opts ...election.Option) *candidate {
	t.Helper()
	return stand(t, clienttest.Client(t, s, nil), append(opts, election.Prefer(preferred))...)
}

func TestALeaderMakesRoomForAPreferredCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		plain := other(t, s, false)
		first := plain.next(0)
		third := other(t, s, false)
		third.waits(clienttest.TTL)
		began := time.Now()
		best := other(t, s, true)
		<-first.ctx.Done()
		if took := time.Since(began); took > time.Second/2 {
			t.Errorf("the leader was told after %s", took)
		}
		clienttest.WantIs(t, "the cause", context.Cause(first.ctx), election.ErrPreferred)
		best.waits(5 * time.Second) // the leader drains
		first.returns(first.ctx.Err())
		second := best.next(2 * soon)
		plain.waits(clienttest.TTL)
		third.waits(clienttest.TTL)
		second.leads(t, s)
		for _, c := range []*candidate{plain, third} {
			if errs := c.told(); len(errs) > 0 {
				t.Errorf("OnError was told %v", errs)
			}
		}
		best.retire(second)
		if clienttest.IsHeld(t, s, election.PreferredKey("boss")) {
			t.Error("PreferredKey is held, and no preferred candidate waits")
		}
		var last *leading
		select {
		case last = <-plain.took:
			third.retire(nil)
			plain.retire(last)
		case last = <-third.took:
			plain.retire(nil)
			third.retire(last)
		case <-time.After(soon):
			t.Fatal("no candidate leads when the preferred one has gone")
		}
	})
}

// The draining for a preferred candidate is bounded, too.
func TestALeaderThatMakesNoRoomIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		plain := other(t, s, false, election.Drain(time.Minute))
		first := plain.next(0)
		best := other(t, s, true)
		second := best.next(2 * time.Minute)
		synctest.Wait() // OnError is told after the release
		plain.wantTold(election.ErrDrain)
		first.returns(nil)
		plain.waits(clienttest.TTL)
		if errs := plain.told(); len(errs) != 0 {
			t.Errorf("OnError was told again: %v", errs)
		}
		best.retire(second)
		plain.retire(plain.next(soon))
	})
}

// After the death of a leader the preferred candidates come first, one after the other.
func TestPreferredCandidatesComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		clienttest.Another(t, s, election.Key("boss"), time.Minute)
		var plain []*candidate
		for range 3 {
			plain = append(plain, other(t, s, false))
		}
		a := other(t, s, true)
		b := other(t, s, true)
		time.Sleep(time.Minute)
		first := a.next(2 * soon)
		time.Sleep(soon) // b waits in a's place now
		a.retire(first)
		second := b.next(2 * soon)
		for _, c := range plain {
			c.waits(clienttest.TTL)
			c.retire(nil)
		}
		b.retire(second)
	})
}

// A preferred candidate is not replaced by another.
func TestAPreferredLeaderStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		a := other(t, s, true)
		first := a.next(0)
		b := other(t, s, true)
		b.waits(10 * clienttest.TTL)
		first.leads(t, s)
		a.retire(first)
		b.retire(b.next(soon))
	})
}

// A preferred candidate that died while it waited is not waited for longer than its lease.
func TestAPreferredCandidateThatHasDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		clienttest.Another(t, s, election.PreferredKey("boss"), clienttest.TTL)
		began := time.Now()
		plain := other(t, s, false)
		l := plain.next(2 * clienttest.TTL)
		if took := time.Since(began); took < clienttest.TTL || took > clienttest.TTL+soon {
			t.Errorf("leads after %s", took)
		}
		plain.retire(l)
	})
}

// A preferred candidate that has lost its lock waits on, and asks again.
func TestAPreferredCandidateThatHasLostItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		rival := clienttest.Another(t, s, election.Key("boss"), time.Hour)
		a := other(t, s, true)
		key := election.PreferredKey("boss")
		before := clienttest.Record(t, s, key)
		s.Expire(key)
		time.Sleep(clienttest.TTL)
		if after := clienttest.Record(t, s, key); !after.Held || after.Token <= before.Token {
			t.Errorf("the row is %+v, and was %+v", after, before)
		}
		a.wantTold(rowlock.ErrLost)
		if _, err := s.Release(t.Context(), []lease.Lease{rival}); err != nil {
			t.Error(err)
		}
		a.retire(a.next(soon))
	})
}

// Whether a preferred candidate waits cannot be read: that keeps no leader from working.
func TestPreferenceThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		s.OnInspect = func(context.Context, lease.Filter) ([]lease.Record, error) {
			return nil, clienttest.ErrDown
		}
		a := other(t, s, false)
		l := a.next(0)
		time.Sleep(time.Hour)
		l.leads(t, s.Store)
		a.retire(l)
	})
}
