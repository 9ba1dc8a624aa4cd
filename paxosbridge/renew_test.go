package paxosbridge_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// silentTable answers no renewal before its ctx ends.
type silentTable struct{ table }

func (silentTable) Renew(ctx context.Context, _ []lease.RenewRequest) ([]lease.Renewed, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A client renews all its leases in one batch, which ends with them.
func TestALeaseOfTheClusterIsRenewedWhileTheDatabaseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		b, err := paxosbridge.New(
			t.Context(), silentTable{r.table}, r.cluster, &paxosbridge.Config{Every: -1},
		)
		r.must(err)
		r.must(b.MoveOut(t.Context(), "there", "test"))
		here, there := r.hold(b, "here", 0), r.hold(b, "there", 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		answers, err := b.Renew(
			ctx,
			[]lease.RenewRequest{{Lease: here, TTL: time.Minute}, {Lease: there, TTL: time.Minute}},
		)
		r.must(err)
		if ctx.Err() != nil {
			t.Error("it was answered when all was over")
		}
		if answers[0].Err == nil || answers[1].Err != nil || answers[1].Outcome != lease.Extended {
			t.Errorf("answered %+v", answers)
		}
		r.must(b.Close())
		_ = r.Close()
	})
}

// A longer renewal would hold the key in the cluster when it is back in the table already.
func TestOnlyTheRenewalBeyondDelegationOfABatchIsRefused(t *testing.T) {
	r := newRig(t, paxosbridge.Config{Delegation: delegation})
	for _, key := range []string{"a", "b"} {
		r.must(r.MoveOut(t.Context(), key, "test"))
	}
	long, short := r.hold(r.Bridge, "a", 1), r.hold(r.Bridge, "b", 1)
	for _, ttl := range []time.Duration{delegation + 1, math.MaxInt64} {
		answers, err := r.Renew(
			t.Context(),
			[]lease.RenewRequest{{Lease: long, TTL: ttl}, {Lease: short, TTL: time.Minute}},
		)
		r.must(err)
		r.wantIs(answers[0].Err, lease.ErrConfig)
		if answers[1].Err != nil || answers[1].Outcome != lease.Extended {
			t.Errorf("the other was answered %+v", answers[1])
		}
		_, err = r.Renew(t.Context(), []lease.RenewRequest{{Lease: long, TTL: ttl}})
		r.wantIs(err, lease.ErrConfig)
	}
}

// blindTable can be told not to answer Inspect.
type blindTable struct {
	table
	blind *bool
}

func (b blindTable) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if *b.blind {
		return nil, errDown
	}
	return b.table.Inspect(ctx, f)
}

// The last read is too old for a long lease, and fresh enough for a short one.
func TestAShortLeaseIsRenewedWhenALongOneCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		blind := false
		b, err := paxosbridge.New(
			t.Context(), blindTable{r.table, &blind}, r.cluster,
			&paxosbridge.Config{Every: -1, Delegation: delegation, Refresh: delegation / 2},
		)
		r.must(err)
		for _, key := range []string{"a", "b"} {
			r.must(b.MoveOut(t.Context(), key, "test"))
		}
		long, short := r.hold(b, "a", 1), r.hold(b, "b", 1)
		blind = true
		time.Sleep(30 * time.Second)
		answers, err := b.Renew(
			t.Context(),
			[]lease.RenewRequest{
				{Lease: long, TTL: delegation - time.Second}, {Lease: short, TTL: time.Minute},
			},
		)
		r.must(err)
		r.wantIs(answers[0].Err, errDown)
		if answers[1].Err != nil || answers[1].Outcome != lease.Extended {
			t.Errorf("the short one was answered %+v", answers[1])
		}
		r.must(b.Close())
		_ = r.Close()
	})
}

// A key was taken back by force while this process was suspended, was used, and its row was swept.
// The lost cluster is back and would grant the key.
func TestAnOldRouteWithoutARowIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		_ = r.Close() // it would audit
		slow := r.bridge(t, paxosbridge.Config{Delegation: delegation, Refresh: delegation / 2})
		r.must(slow.MoveOut(t.Context(), "k", "test"))
		q := request("k")
		q.TTL = delegation/2 + 2*time.Second
		l := lease.Lease{Key: "k", Owner: q.Owner, Token: r.ask(slow, q).Token}
		r.table.Forget("k") // as if it had come back and had been swept
		// A lease granted now may end later than the last read allows, and no audit has run.
		time.Sleep(delegation/2 - time.Second)
		answers, err := slow.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: q.TTL}})
		if err == nil && answers[0].Outcome == lease.Extended {
			t.Errorf("renewed: %+v", answers)
		}
		r.cluster.Expire("k")
		q.Owner = lease.NewOwner()
		_, err = slow.Acquire(t.Context(), []lease.AcquireRequest{q})
		r.wantIs(err, lease.ErrBusy)
		_ = slow.Close()
	})
}
